"""Wire names of Services across clusters."""

from federation.api.names import DOMAIN

# Services across clusters
SERVICE_IMPORT_CONTROLLER = DOMAIN + "serviceimport-controller"
EVENT_NO_SERVICE = "NoService"
SOURCE_CLUSTER = "kubeadmiral.io/source-cluster"
"""Label of an imported EndpointSlice: the cluster whose EndpointSlice it copies."""
