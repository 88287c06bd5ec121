"""Defaults of built-in kinds, as `SetDefaults_*` in k8s.io/kubernetes/pkg/apis/*/v1; pure, in place, idempotent.

The strategies call these functions. Custom resources have the defaults of their schemas (`schema/defaulting.py`).
"""
