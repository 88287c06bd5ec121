"""Wire names of the feature services."""

from federation.api.names import DOMAIN

# Services across clusters
SERVICE_IMPORT_CONTROLLER = DOMAIN + "serviceimport-controller"
EVENT_NO_SERVICE = "NoService"
