"""RBAC of the federation's kinds on the host: the rules of `view` and `edit`, and kinds without default rules.

Users write policies and workloads in their namespaces, and the kinds that leaf features name in their `Rights`.
FederatedObject, CollectedStatus and PropagatedVersion belong to the control plane. Federated objects contain copies of
Secrets, so reading them needs permission to read Secrets, and so does any object with values of Secrets. The result for
every role, kind and verb is docs/reference/rights.md.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from federation.admission.federatedobjects import FEDERATED, REPORTS
from federation.api.resources import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    CORE_GROUP,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_ROLLOUTS,
    KRUISE_GROUP,
    OVERRIDE_POLICIES,
    PROJECTS,
    PROPAGATION_POLICIES,
)
from federation.api.secretkinds import HOLDING_SECRETS
from federation.api.secretvalues import carries_secret_values
from federation.apimachinery.resources import POD_METRICS, SECRETS, Resource
from federation.apiserver.auth.bootstrappolicy import RBACOptions
from federation.apiserver.http.hiddencontent import ContentRule
from federation.features.catalogue import FEATURES

_STEERED = [FEDERATED_ROLLOUTS.plural]
"""Kinds that the control plane creates, and that users steer by their spec."""
_LIMITS = [FEDERATED_RESOURCE_QUOTAS.plural]
"""Kinds that limit the users of a namespace: they read them."""
_WRITTEN = [DELIVERY_SUSPENSIONS.plural, OVERRIDE_POLICIES.plural, PROPAGATION_POLICIES.plural]
"""Kinds that users write in their namespaces."""
_WORKLOADS = [
    f"{resource.plural}{suffix}" for resource in (CLONE_SETS, ADVANCED_STATEFUL_SETS) for suffix in ("", "/scale")
]
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]


def _rules(verbs: list[str], resources: Iterable[Resource]) -> Iterator[dict[str, Any]]:
    """Yield one rule per API group."""
    by_group: dict[str, list[str]] = {}
    for resource in resources:
        by_group.setdefault(resource.group, []).append(resource.plural)
    for group, plurals in by_group.items():
        yield {"verbs": verbs, "apiGroups": [group], "resources": plurals}


_OF_FEATURES = list(chain.from_iterable(feature.rights.written for feature in FEATURES))
_READ_ONLY = list(chain.from_iterable(feature.rights.read for feature in FEATURES))
_SECRET = list(chain.from_iterable(feature.rights.written_unread for feature in FEATURES))

LISTED_BY_NAME = frozenset((each.group, each.plural) for each in (FEDERATED_CLUSTERS, PROJECTS))
"""Kinds of which a member of a project lists what the project's role names."""

HOST_RBAC = RBACOptions(
    rules={
        "view": [
            {"verbs": _READ, "apiGroups": [CORE_GROUP], "resources": [*_WRITTEN, *_STEERED, *_LIMITS]},
            {"verbs": _READ, "apiGroups": [KRUISE_GROUP], "resources": _WORKLOADS},
            {"verbs": ["get", "list"], "apiGroups": [POD_METRICS.group], "resources": [POD_METRICS.plural]},
            *_rules(_READ, [*_READ_ONLY, *_OF_FEATURES]),
        ],
        "edit": [
            {"verbs": _WRITE, "apiGroups": [CORE_GROUP], "resources": _WRITTEN},
            {"verbs": ["patch", "update"], "apiGroups": [CORE_GROUP], "resources": _STEERED},
            {"verbs": _WRITE, "apiGroups": [KRUISE_GROUP], "resources": _WORKLOADS},
            *_rules(_WRITE, _OF_FEATURES),
            *_rules([*_READ, *_WRITE], _SECRET),
        ],
    },
    retired=frozenset((resource.group, resource.plural) for resource in (*FEDERATED, *REPORTS)),
    implied={(resource.group, resource.plural): (SECRETS.group, SECRETS.plural) for resource in HOLDING_SECRETS},
)
SECRETS_IN_OBJECTS = ContentRule(carries_secret_values, SECRETS.group, SECRETS.plural)
