"""The fields that Kubernetes fills in built-in kinds when a manifest leaves them out; pure, in place, idempotent.

Follows `SetDefaults_*` of k8s.io/kubernetes/pkg/apis/*/v1. The strategies call these functions; custom resources get
their defaults from their schemas instead (`registry/schema`).
"""
