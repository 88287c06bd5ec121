"""The kinds whose objects can hold Secrets: they are stored encrypted, and the audit log has none of their content."""

from federation.api.kubefedkinds import FEDERATED_CONFIG_MAPS, FEDERATED_SECRETS
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS

_TEMPLATES = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS, FEDERATED_SECRETS)
"""Their templates and overrides are copies of Secrets."""
ENCRYPTED_PREFIXES = ("/core/secrets/", *(f"/{kind.group}/{kind.plural}/" for kind in _TEMPLATES))
"""Names of stored objects that can hold Secrets; credentials of members are Secrets, too."""
UNAUDITED_RESOURCES = tuple((kind.group, kind.plural) for kind in (*_TEMPLATES, FEDERATED_CONFIG_MAPS))
"""Groups and plurals."""
