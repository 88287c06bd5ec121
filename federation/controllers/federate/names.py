"""Names that only the federate controller uses."""

# Finalizers
ORPHAN_FINALIZER = "orphan"
"""Kubernetes' own, on objects that are deleted with --cascade=orphan."""

# Event reasons of the federate controller
EVENT_CREATE_FEDERATED_OBJECT = "CreateFederatedObject"
EVENT_UPDATE_FEDERATED_OBJECT = "UpdateFederatedObject"
EVENT_FEDERATED_OBJECT_WRITTEN_AGAIN = "FederatedObjectWrittenAgain"
