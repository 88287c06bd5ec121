"""The kinds that hold Secrets by their nature, besides Secret: reading them needs the right to read Secrets.

Whatever else carries values of Secrets is recognized by its content (`secretvalues.py`).
"""

from federation.api.kubefedkinds import FEDERATED_CONFIG_MAPS, FEDERATED_SECRETS
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
)

HOLDING_SECRETS = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS, FEDERATED_SECRETS)
"""Their templates and overrides are copies of Secrets."""
ENCRYPTED_PREFIXES = ("/core/secrets/", *(f"/{kind.group}/{kind.plural}/" for kind in HOLDING_SECRETS))
"""Names of stored objects that are encrypted whatever they contain; credentials of members are Secrets, too."""
UNAUDITED_RESOURCES = tuple(
    (kind.group, kind.plural)
    for kind in (*HOLDING_SECRETS, FEDERATED_CONFIG_MAPS, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)
)
"""Groups and plurals of which the audit log has no values: a patch does not show what it is a part of."""
