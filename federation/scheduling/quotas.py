"""Quotas of namespaces over all clusters, budgets included: what is used, and what a unit may still get. Pure.

`Quotas` has one ledger (`planning/accounts/accountledger.py`) for each namespace with a FederatedResourceQuota. Its
payers are the workloads, their claims are annotations (`planning/accounts/claim.py`). The engine asks the unit's
`Headroom` (`quotaheadroom.py`); the claim that goes with the write of a decision is planned here.
Reference: docs/reference/quotas.md.

Decisions: docs/decisions/0066-quotas-in-decisions.md, docs/decisions/0230-one-ledger.md
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.objectshape import revision_of
from federation.planning.accounts.accountledger import Ledger
from federation.planning.accounts.claim import CLAIM, NOTHING_YET, Claim, Use, claim_of, plan_claim
from federation.planning.accounts.usage import Scope
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.rendering.admittednodes import is_released
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.planning.suspending import is_suspended
from federation.scheduling.framework.quotaheadroom import (
    MEASURES,
    QUOTA,
    Headroom,
    amounts_of,
    describe,
    find_excess,
    limit_of,
    plain,
    scope_of,
)
from federation.scheduling.framework.types import PODS, Cluster, Resources, SchedulingUnit
from federation.scheduling.podgroups import JOINS, charged_to, membership_of
from federation.scheduling.podrequest import claims_of, has_pods, pods_per_replica, request_of

Clusters = Mapping[str, Cluster]
_KEEPING = frozenset(("ReplicaSet", "ReplicationController"))
"""Kinds whose pods stay as they are when their template changes."""


class Quotas:
    """All quotas. Namespaces without any cost nothing but a look-up."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger[Claim]] = {}
        self._scopes: dict[str, dict[str, Scope[str]]] = {}
        """The quotas, by namespace and name."""
        self._short: dict[str, set[Hashable]] = {}
        """Objects whose last decision left something unplaced, by namespace."""
        self._withheld: dict[str, dict[Hashable, str]] = {}
        """The quota that keeps content from being delivered, by namespace and object."""

    def __contains__(self, namespace: str) -> bool:
        """Return whether the namespace has a quota."""
        return namespace in self._ledgers

    # -- quotas

    def put(self, source: Mapping[str, Any]) -> bool:
        """Add or replace a FederatedResourceQuota; return whether it is the first of its namespace."""
        metadata = source["metadata"]
        is_first = metadata["namespace"] not in self._ledgers
        self._ledgers.setdefault(metadata["namespace"], Ledger())
        overall = (source.get("spec") or {}).get("overall") or {}
        scope = scope_of(metadata["name"], {name: _limit(name, value) for name, value in overall.items()})
        self._scopes.setdefault(metadata["namespace"], {})[scope.name] = scope
        return is_first

    def remove(self, namespace: str, name: str) -> frozenset[Hashable]:
        """Remove a quota; return the objects that it concerned: those that waited, all with the last one."""
        scopes = self._scopes.get(namespace, {})
        if scopes.pop(name, None) is None:
            return frozenset()
        if scopes:
            return self.waiting(namespace)
        del self._scopes[namespace]
        return (
            frozenset(self._short.pop(namespace, ()))
            | self._withheld.pop(namespace, {}).keys()
            | frozenset(self._ledgers.pop(namespace).payers())
        )

    def names(self, namespace: str) -> list[str]:
        """Return the names of the quotas of a namespace."""
        return sorted(self._scopes.get(namespace, ()))

    # -- objects that lack something

    def waiting(self, namespace: str) -> frozenset[Hashable]:
        """Return the objects that a quota keeps from getting all that they want."""
        return frozenset(self._short.get(namespace, ())) | self._withheld.get(namespace, {}).keys()

    def wait(self, namespace: str, key: Hashable, *, is_short: bool) -> None:
        """Record whether a decision about an object left something unplaced because of a quota."""
        if namespace in self._ledgers:
            short = self._short.setdefault(namespace, set())
            (short.add if is_short else short.discard)(key)

    def withheld(self, namespace: str, key: Hashable) -> str:
        """Return the quota that keeps an object's content from being delivered, "" for none."""
        return self._withheld.get(namespace, {}).get(key, "")

    # -- claims

    def observe(self, key: Hashable, federated: Mapping[str, Any], type_: FederatedType | None) -> bool:
        """Record what an object has; return whether that changed."""
        namespace = str(federated["metadata"].get("namespace") or "")
        if (ledger := self._ledgers.get(namespace)) is None:
            return False
        claim = _held(federated, type_) if type_ is not None else None
        if claim is None:
            return self.forget(namespace, key)
        return ledger.report(key, claim, revision_of(federated))

    def finish(self, key: Hashable, federated: Mapping[str, Any], type_: FederatedType) -> bool:
        """Count what an object has when members have followed its last decision; return whether that is less."""
        namespace = str(federated["metadata"].get("namespace") or "")
        ledger, claim = self._ledgers.get(namespace), _held(federated, type_)
        if ledger is not None and claim is not None:
            before, after = ledger.claims(key), Claim(claim.may)
            ledger.remove(key)
            ledger.report(key, after, revision_of(federated))
            return before != [after]
        return False

    def forget(self, namespace: str, key: Hashable) -> bool:
        """Remove an object that is gone, or has no pods; return whether that changed anything."""
        self._short.get(namespace, set()).discard(key)
        self._withheld.get(namespace, {}).pop(key, None)
        ledger = self._ledgers.get(namespace)
        return ledger is not None and ledger.remove(key)

    def with_claim(
        self,
        key: Hashable,
        base: Mapping[str, Any],
        type_: FederatedType,
        patch: Mapping[str, Any] | None,
        clusters: Clusters,
    ) -> dict[str, Any] | None:
        """Return the merge patch with the claim of the object that it makes, and count that claim from now on.

        What does not fit is recorded for `withheld`. An object that pays nothing, or that no quota limits any more, has
        no claim.
        """
        namespace, claim = str(base["metadata"].get("namespace") or ""), None
        if namespace in self._ledgers:
            after = apply_merge_patch(base, patch or {})
            generation = int(base["metadata"].get("generation") or 0) + ("spec" in (patch or {}))
            claim = self._plan(namespace, key, _held(base, type_), after, type_, clusters, generation)
        entry = CLAIM.entry(claim)
        if entry[CLAIM.name] == (base["metadata"].get("annotations") or {}).get(CLAIM.name):
            if patch is not None:
                return dict(patch)
            ledger = self._ledgers.get(namespace)
            if ledger is None or not ledger.is_open(key, revision_of(base)):
                return None
            # An earlier decision was written, or was not: this write, which changes nothing, shows it.
        elif claim is not None:
            self._ledgers[namespace].assume(key, claim, revision_of(base))
        metadata = (patch or {}).get("metadata") or {"resourceVersion": base["metadata"].get("resourceVersion")}
        annotations = {**(metadata.get("annotations") or {}), **entry}
        return {**(patch or {}), "metadata": {**metadata, "annotations": annotations}}

    def _plan(
        self,
        namespace: str,
        key: Hashable,
        before: Claim | None,
        federated: Mapping[str, Any],
        type_: FederatedType,
        clusters: Clusters,
        generation: int,
    ) -> Claim | None:
        ledger, withheld = self._ledgers[namespace], self._withheld.setdefault(namespace, {})
        withheld.pop(key, None)
        if (wanted := uses_of(federated, type_)) is None:
            return None
        before = before or NOTHING_YET
        if type_.resource.kind in _KEEPING:
            wanted = {name: use.with_pods_of(before.may.get(name)) for name, use in wanted.items()}
        # Where overrides do not apply, what is there stays there.
        unknown = (effective_placement(federated) - wanted.keys()) & before.may.keys()
        wanted |= {name: before.may[name] for name in unknown}
        scopes, measures = self._scopes[namespace], self._measures(namespace)
        value = partial(_value, measures=measures, clusters=clusters)
        others, present = ledger.used(value, without=key), ledger.paid(key, value) or {}

        def find(claim: Claim) -> str:
            return describe(find_excess(scopes, others, present, amounts_of(claim.may, measures, clusters)))

        claim, excess = plan_claim(before, wanted, generation, partial(_amounts, clusters=clusters), find)
        if excess:
            withheld[key] = excess
        return claim

    def revoke(self, namespace: str, key: Hashable) -> None:
        """Forget a claim that was not written, or that is reported."""
        if (ledger := self._ledgers.get(namespace)) is not None:
            ledger.revoke(key)

    def settle(self, namespace: str, key: Hashable, base: Mapping[str, Any]) -> None:
        """Forget decisions about this version of an object: a later write has found and left it as it was."""
        if (ledger := self._ledgers.get(namespace)) is not None:
            ledger.settle(key, revision_of(base))

    # -- questions

    def limited(
        self, unit: SchedulingUnit, federated: Mapping[str, Any], type_: FederatedType, clusters: Clusters
    ) -> SchedulingUnit:
        """Return the unit with what it may get; the same unit without a quota, or if it runs no pods."""
        template = federated["spec"]["template"]
        if unit.namespace not in self._ledgers or not has_pods(template, type_):
            return unit
        if is_suspended(template) and not is_released(federated):
            return unit
        uses = uses_of(federated, type_) or {}
        requests = {name: use.request for name, use in uses.items() if use.request != unit.request}
        return QUOTA.on(unit, self.headroom(key_in(federated), unit, clusters, requests))

    def headroom(
        self, key: Hashable, unit: SchedulingUnit, clusters: Clusters, requests: Mapping[str, Resources] | None = None
    ) -> Headroom | None:
        """Return what an object may get; None without a quota. `requests` are those that overrides change."""
        ledger = self._ledgers.get(unit.namespace)
        if ledger is None:
            return None
        measures = self._measures(unit.namespace)
        value = partial(_value, measures=measures, clusters=clusters)
        others = dict.fromkeys(measures, 0) | ledger.used(value, without=key)
        present = dict.fromkeys(measures, 0) | (ledger.paid(key, value) or {})
        if (joins := JOINS.of(unit)) is not None:  # its leader is charged for it
            own = amounts_of(_uses(unit, dict.fromkeys(joins, 1)), measures, clusters)
            others = {name: max(0, amount - own[name]) for name, amount in others.items()}
            present = amounts_of(_uses(unit, replica_counts(unit.current, unit.desired_replicas)), measures, clusters)
        return Headroom(
            dict(self._scopes[unit.namespace]),
            others,
            present,
            unit.request,
            clusters,
            unit.pods.per_replica,
            requests or {},
        )

    def used(self, namespace: str, name: str, clusters: Clusters) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """Return what is used of a quota's resources: in all, and by cluster."""
        ledger = self._ledgers.get(namespace)
        if ledger is None:
            return {}, {}
        scope = self._scopes[namespace].get(name)
        hard = list(scope.limits) if scope is not None else []
        total = ledger.used(partial(_value, measures=hard, clusters=clusters))
        by_cluster: dict[str, dict[str, int]] = {}
        for payer in ledger.payers():
            for claim in ledger.claims(payer)[-1:]:
                for cluster, use in claim.may.items():
                    amounts, sums = amounts_of({cluster: use}, hard, clusters), by_cluster.get(cluster, {})
                    if use.replicas:
                        by_cluster[cluster] = {each: sums.get(each, 0) + amount for each, amount in amounts.items()}
        return {each: total.get(each, 0) for each in hard}, dict(sorted(by_cluster.items()))

    def _measures(self, namespace: str) -> list[str]:
        """Return the measures that have a limit."""
        return sorted({measure for scope in self._scopes[namespace].values() for measure in scope.limits})


def describe_withheld(excess: str) -> str:
    """Return why the content of an object is not delivered, "" if it is within the quotas."""
    return f"its content is not delivered, because it does not fit within {excess}" if excess else ""


def key_in(federated: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a federated object in the ledger: its namespace and name."""
    metadata = federated["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def use_in(obj: Mapping[str, Any], federated: Mapping[str, Any], type_: FederatedType) -> Use | None:
    """Return what an object uses in a member as it is there; None for a kind without pods.

    A kind without replicas counts as one; a suspended object runs nothing.
    """
    if not has_pods(obj, type_):
        return None
    copies = type_.replicas(obj)
    count = 0 if is_suspended(obj) else 1 if copies is None else max(0, copies)
    return Use(count, request_of(obj, type_, claims_of(federated)), pods_per_replica(obj, type_))


def uses_of(federated: Mapping[str, Any], type_: FederatedType) -> dict[str, Use] | None:
    """Return what an object would use by cluster, as placed and overridden; None if it pays for no pods itself.

    No schema checks a template that is written by hand, so it may get pods later.
    """
    placed, ended = sorted(effective_placement(federated)), evidence_by_cluster(federated)
    if not has_pods(federated["spec"]["template"], type_):
        return dict.fromkeys(placed, Use(0)) if is_hand_written(federated) else None
    if (charged := charged_to(federated, type_)) is None:
        return None
    if membership_of(federated) is not None:  # the leader of its group
        return {name: Use(int(name not in ended), *charged) for name in placed}
    renderer, known, found = Renderer(federated, type_), dict[int, Use | None](), dict[str, Use]()
    for name in placed:
        try:
            obj = renderer.render(name).object
        except RenderError:
            continue
        use = known[id(obj)] = known.get(id(obj)) or use_in(obj, federated, type_)
        if use is not None:
            found[name] = Use(0, use.request, use.pods) if name in ended else use
    return found


def replica_counts(placements: Mapping[str, int | None], copies: int | None) -> dict[str, int]:
    """Return the replicas by cluster; a kind without replicas counts as one per cluster."""
    each = 1 if copies is None else copies
    return {name: each if count is None else count for name, count in placements.items()}


def _held(federated: Mapping[str, Any], type_: FederatedType) -> Claim | None:
    """Return the claim of an object, None if it pays nothing.

    One without an annotation counts as placed: what runs when a quota comes is within it. What is new has an
    annotation before it runs: from its first decision, or from admission if a user writes the placement.
    """
    if (claim := claim_of(federated)) is not None:
        return claim
    uses = uses_of(federated, type_)
    return Claim(uses) if uses is not None else None


def is_outdated(federated: Mapping[str, Any], type_: FederatedType) -> bool:
    """Return whether an object's claim is not what it would use now."""
    claim, uses = claim_of(federated), uses_of(federated, type_)
    if uses is None or claim is None:
        return claim is not None or uses is not None
    is_left = claim.may.keys() - effective_placement(federated)
    return bool(is_left) or any(claim.may.get(name) != use for name, use in uses.items())


def _limit(name: str, value: Any) -> int | None:
    """Return a limit, None for one that is no amount: an earlier version may have stored it."""
    try:
        return limit_of(name, value)
    except ValueError:
        return None


def _uses(unit: SchedulingUnit, replicas: Mapping[str, int]) -> dict[str, Use]:
    return {name: Use(count, dict(unit.request), unit.pods.per_replica) for name, count in replicas.items()}


def _value(claim: Claim, *, measures: Sequence[str], clusters: Clusters) -> dict[str, int]:
    """Return what a claim takes of measures."""
    return {
        measure: max(amount, claim.pays.get(measure if measure in MEASURES else plain(measure), 0))
        for measure, amount in amounts_of(claim.may, measures, clusters).items()
    }


def _amounts(claim: Claim, *, clusters: Clusters) -> dict[str, int]:
    """Return all that a claim takes."""
    measures = (
        {name for use in claim.may.values() for name in use.request} | claim.pays.keys() | MEASURES.keys() | {PODS}
    )
    return _value(claim, measures=sorted(measures), clusters=clusters)
