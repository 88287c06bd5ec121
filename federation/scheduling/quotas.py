"""Quotas of namespaces over all clusters, budgets included: what is used, and what a unit may still get. Pure.

`QuotaLedger` knows the FederatedResourceQuotas and, in namespaces that have any, what each object has in each cluster.
A decision counts at once, before its write is observed. The engine asks the unit's `Headroom` (`quotaheadroom.py`).
Reference: docs/reference/quotas.md.

Decision: docs/decisions/0066-quotas-in-decisions.md
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.planning.federatedobject.placements import current_clusters
from federation.scheduling.framework.quotaheadroom import Charge, Headroom, Quota, amounts_of, limit_of
from federation.scheduling.framework.types import Cluster, SchedulingUnit
from federation.scheduling.podgroups import charged_to
from federation.scheduling.podrequest import has_pods


@dataclass(slots=True)
class _Namespace:
    """The quotas of one namespace, and what its objects have; `assumed` are decisions that are not observed yet."""

    quotas: dict[str, Quota] = field(default_factory=dict)
    charges: dict[Hashable, Charge] = field(default_factory=dict)
    assumed: dict[Hashable, Charge] = field(default_factory=dict)
    waiting: set[Hashable] = field(default_factory=set)

    def current(self) -> Mapping[Hashable, Charge]:
        return {**self.charges, **self.assumed}


class QuotaLedger:
    """All quotas. Namespaces without any cost nothing but a look-up."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def __contains__(self, namespace: str) -> bool:
        """Return whether the namespace has a quota."""
        return namespace in self._namespaces

    def put(self, source: Mapping[str, Any]) -> bool:
        """Add or replace a FederatedResourceQuota; return whether it is the first of its namespace."""
        metadata = source["metadata"]
        is_first = metadata["namespace"] not in self._namespaces
        overall = (source.get("spec") or {}).get("overall") or {}
        hard = {name: limit_of(name, value) for name, value in overall.items()}
        namespace = self._namespaces.setdefault(metadata["namespace"], _Namespace())
        namespace.quotas[metadata["name"]] = Quota(metadata["name"], hard)
        return is_first

    def remove(self, namespace: str, name: str) -> frozenset[Hashable]:
        """Remove a quota; return the objects that may have waited for it."""
        found = self._namespaces.get(namespace)
        if found is None or found.quotas.pop(name, None) is None:
            return frozenset()
        if not found.quotas:
            del self._namespaces[namespace]
        return frozenset(found.waiting)

    def waiting(self, namespace: str) -> frozenset[Hashable]:
        """Return the objects that a quota keeps from getting all that they want."""
        found = self._namespaces.get(namespace)
        return frozenset(found.waiting) if found is not None else frozenset()

    def wait(self, namespace: str, key: Hashable, *, is_short: bool) -> None:
        """Record whether an object lacks something because of a quota."""
        if (found := self._namespaces.get(namespace)) is not None:
            (found.waiting.add if is_short else found.waiting.discard)(key)

    def observe(self, namespace: str, key: Hashable, charge: Charge | None) -> bool:
        """Record what an object has, None when it is gone; return whether that changed."""
        found = self._namespaces.get(namespace)
        if found is None:
            return False
        if charge is None:
            found.waiting.discard(key)
            return (found.charges.pop(key, None), found.assumed.pop(key, None)) != (None, None)
        if found.assumed.get(key) == charge:
            del found.assumed[key]
        is_changed = found.charges.get(key) != charge
        found.charges[key] = charge
        return is_changed

    def assume(self, namespace: str, key: Hashable, charge: Charge | None) -> None:
        """Count a decision before it is written; None takes that back."""
        if (found := self._namespaces.get(namespace)) is not None:
            found.assumed.pop(key, None)
            if charge is not None and charge != found.charges.get(key):
                found.assumed[key] = charge

    def headroom(self, key: Hashable, unit: SchedulingUnit, clusters: Mapping[str, Cluster]) -> Headroom | None:
        """Return what an object may get; None without a quota."""
        found = self._namespaces.get(unit.namespace)
        if found is None:
            return None
        others = [charge for other, charge in found.current().items() if other != key]
        resources = {name for quota in found.quotas.values() for name in quota.hard}
        used = _sum(others, resources, clusters)
        if unit.joins is not None:  # its leader is charged for it
            own = amounts_of(Charge(unit.request, dict.fromkeys(unit.joins, 1)), used, clusters)
            used = {name: max(0, amount - own[name]) for name, amount in used.items()}
        return Headroom(
            tuple(found.quotas[name] for name in sorted(found.quotas)),
            used,
            unit.request,
            replica_counts(unit.current, unit.desired_replicas),
            clusters,
            unit.pods_per_replica,
        )

    def quota(self, namespace: str, name: str) -> Quota | None:
        """Return a quota, None when there is none."""
        found = self._namespaces.get(namespace)
        return found.quotas.get(name) if found is not None else None

    def names(self, namespace: str) -> list[str]:
        """Return the names of the quotas of a namespace."""
        found = self._namespaces.get(namespace)
        return sorted(found.quotas) if found is not None else []

    def used(self, namespace: str, quota: Quota, clusters: Mapping[str, Cluster]) -> dict[str, dict[str, int]]:
        """Return what is used of a quota's resources by cluster."""
        found = self._namespaces.get(namespace)
        charges = found.current().values() if found is not None else ()
        involved = sorted({cluster for charge in charges for cluster, count in charge.replicas.items() if count})
        return {name: _sum([charge.only(name) for charge in charges], quota.hard, clusters) for name in involved}


def key_in(federated: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a federated object in the ledger: its namespace and name."""
    metadata = federated["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def charge_of(federated: Mapping[str, Any], federated_type: FederatedType | None) -> Charge | None:
    """Return what a federated object has, as placed; None for kinds without pods, and for pods whose leader has it."""
    template = federated["spec"]["template"]
    if federated_type is None or not has_pods(template, federated_type):
        return None
    if (charged := charged_to(federated, federated_type)) is None:
        return None
    counts = replica_counts(current_clusters(federated, federated_type), federated_type.replicas(template))
    return Charge(charged[0], counts, charged[1])


def charge_of_decision(unit: SchedulingUnit, placements: Mapping[str, int | None]) -> Charge | None:
    """Return what a decision gives to the unit; None for a pod whose leader has it."""
    if unit.joins is not None:
        return None
    return Charge(unit.request, replica_counts(placements, unit.desired_replicas), unit.pods_per_replica)


def replica_counts(placements: Mapping[str, int | None], copies: int | None) -> dict[str, int]:
    """Return the replicas by cluster; a kind without replicas counts as one per cluster."""
    each = 1 if copies is None else copies
    return {name: each if count is None else count for name, count in placements.items()}


def _sum(charges: Iterable[Charge], resources: Iterable[str], clusters: Mapping[str, Cluster]) -> dict[str, int]:
    total = dict.fromkeys(resources, 0)
    for charge in charges:
        for name, amount in amounts_of(charge, total, clusters).items():
            total[name] += amount
    return total
