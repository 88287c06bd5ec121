"""The rights of the host and its users in a simulated member: what its administrator would allow for a trial.

The same objects as in examples/member-proxy, which an administrator of a real member applies.
"""

import contextlib
from typing import Any

from federation.api import names
from federation.apimachinery.errors import AlreadyExists
from federation.apimachinery.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Resource
from federation.apiserver.auth.identity import MASTERS, SERVICE_ACCOUNTS_GROUP
from federation.client.client import Client
from federation.memberproxy.memberusers import PREFIX

_IMPERSONATOR = f"{PREFIX}impersonator"
_FEDERATION = f"{SERVICE_ACCOUNTS_GROUP}:{names.SYSTEM_NAMESPACE}"


def _binding(name: str, role: str, group: str) -> dict[str, Any]:
    api_group = CLUSTER_ROLES.group
    return {
        "apiVersion": CLUSTER_ROLE_BINDINGS.api_version,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "apiGroup": api_group, "name": group}],
    }


OBJECTS: tuple[tuple[Resource, dict[str, Any]], ...] = (
    (
        CLUSTER_ROLES,
        {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": "ClusterRole",
            "metadata": {"name": _IMPERSONATOR},
            "rules": [
                {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/*"], "verbs": ["impersonate"]},
            ],
        },
    ),
    (
        CLUSTER_ROLE_BINDINGS,
        _binding(_IMPERSONATOR, _IMPERSONATOR, _FEDERATION),
    ),
    (CLUSTER_ROLE_BINDINGS, _binding(f"{PREFIX}administrators", "cluster-admin", PREFIX + MASTERS)),
)


METRICS_READER: dict[str, Any] = {
    "apiVersion": CLUSTER_ROLES.api_version,
    "kind": "ClusterRole",
    "metadata": {
        "name": "system:aggregated-metrics-reader",
        "labels": {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")},
    },
    "rules": [{"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
}
"""The role that a metrics server brings: who may view pods may view their metrics."""


async def admit_host_users(client: Client, *, trusts_federation: bool = False) -> None:
    """Create the roles and bindings that do not exist yet; for members of `fedctl up`, also all rights of the host."""
    ours = _binding(f"{PREFIX}federation", "cluster-admin", _FEDERATION)
    more = ((CLUSTER_ROLE_BINDINGS, ours),) if trusts_federation else ()
    for resource, obj in (*OBJECTS, (CLUSTER_ROLES, METRICS_READER), *more):
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, obj)
