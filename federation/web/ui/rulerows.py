"""Rules as rows: rules for clusters, suspensions and freezes, with what they act on now and until when. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    CLUSTER_TAINT_POLICIES,
    DELIVERY_SUSPENSIONS,
    REMEDIES,
)
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Resource
from federation.planning.freezes.changefreeze import compile_freeze
from federation.planning.freezes.suspension import compile_suspension
from federation.planning.windows import MALFORMED, next_opening
from federation.web.ui.actionscreen import address_of
from federation.web.ui.policytext import mappings
from federation.web.ui.ruletext import describe_freeze, describe_rule, describe_scope

RESOURCES = (
    CLUSTER_TAINT_POLICIES,
    REMEDIES,
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    DELIVERY_SUSPENSIONS,
)
_UNREADABLE = (*MALFORMED, AttributeError)
_ACTIVE = ("Active", "Clearing")
_RANKS = ("bad", "warn", "busy", "good", "unknown")
SORTS: Mapping[str, Callable[["RuleRow"], Any]] = {
    "name": lambda row: natural_key(row.name),
    "kind": lambda row: row.kind,
    "namespace": lambda row: natural_key(row.namespace),
    "now": lambda row: _RANKS.index(row.tone),
}


@dataclass(frozen=True, slots=True)
class RuleCluster:
    """A cluster in which a rule is not calm: its state there, and since when."""

    name: str
    state: str
    since: str


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule. `state` says what it does now, `tone` is its colour.

    `until` is the time when it ends, and `next` when it begins again, both "" without one. `owner` is who answers for
    it, and `reason` what its messages quote. `key` is how objects that wait for it name it.
    """

    kind: str
    namespace: str
    name: str
    href: str
    key: str
    scope: str
    does: str
    tone: str
    state: str
    problem: str
    clusters: tuple[RuleCluster, ...]
    until: str
    next: str
    owner: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Now:
    """The part of a row that depends on the time."""

    tone: str
    state: str
    problem: str = ""
    clusters: tuple[RuleCluster, ...] = ()
    until: str = ""
    next: str = ""


def holds_objects(resource: Resource) -> bool:
    """Return whether objects wait for rules of the kind; the others act on clusters."""
    return resource not in (CLUSTER_TAINT_POLICIES, REMEDIES)


def to_row(resource: Resource, source: Mapping[str, Any], now: datetime) -> RuleRow:
    """Return the row of a rule."""
    metadata, spec = source["metadata"], source.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
    try:
        current, does = _acts(resource, {**source, "spec": spec}, now)
    except _UNREADABLE as error:  # it was stored by other means
        current, does = _Now("bad", "Cannot be read", str(error)), ""
    return RuleRow(
        resource.kind,
        namespace,
        name,
        f"/ui/objects/{address_of(resource, namespace, name)}",
        "/".join(filter(None, (resource.kind, namespace, name))),
        describe_scope(spec, namespace),
        does,
        current.tone,
        current.state,
        current.problem,
        current.clusters,
        current.until,
        current.next,
        str(spec.get("owner") or ""),
        str(spec.get("reason") or ""),
    )


def _acts(resource: Resource, source: Mapping[str, Any], now: datetime) -> tuple[_Now, str]:
    """Return what a rule does now, and what it is there for."""
    if not holds_objects(resource):
        return _of_rule(source.get("status")), describe_rule(source["spec"])
    if resource == CHANGE_FREEZES:
        return _of_freeze(source, now), describe_freeze(source["spec"])
    is_cluster_wide = not resource.namespaced
    return _of_suspension(
        source, now
    ), f"Holds every {'write and deletion' if is_cluster_wide else 'creation and update'}"


def _of_rule(status: Any) -> _Now:
    """Return what a rule for clusters does, from its status."""
    status = status if isinstance(status, Mapping) else {}
    clusters = tuple(
        RuleCluster(str(each.get("name")), str(each.get("state")), str(each.get("since") or ""))
        for each in mappings(status.get("clusters"))
    )
    active = status.get("active")
    pending = sum(each.state not in _ACTIVE for each in clusters)
    if problem := str(status.get("problem") or ""):
        return _Now("bad", "Cannot be read", problem, clusters)
    if active:
        return _Now("warn", f"Active in {to_count(active, 'cluster')}", clusters=clusters)
    if pending:
        return _Now("busy", f"Pending in {to_count(pending, 'cluster')}", clusters=clusters)
    return _Now("good", "Nothing to do") if active is not None else _Now("unknown", "Not looked at yet")


def _of_freeze(source: Mapping[str, Any], now: datetime) -> _Now:
    freeze = compile_freeze(source)
    if freeze.problem:
        return _Now("bad", "Cannot be read", f"holds everything that it may be about: {freeze.problem}")
    end = freeze.end(now)
    try:
        openings = [at for each in freeze.windows if (at := next_opening(each, end or now)) is not None]
    except MALFORMED:  # a schedule that comes never again
        openings = []
    following = to_rfc3339(min(openings)) if openings else ""
    if end is not None:
        return _Now("busy", "Holds", until=to_rfc3339(end), next=following)
    return _Now("good", "Between windows", next=following) if openings else _Now("unknown", "Over")


def _of_suspension(source: Mapping[str, Any], now: datetime) -> _Now:
    suspension = compile_suspension(source)
    if suspension.problem:
        return _Now("bad", "Cannot be read", f"holds everything that it may be about: {suspension.problem}")
    if suspension.until is None:
        return _Now("busy", "Holds")
    until = to_rfc3339(suspension.until)
    return _Now("busy", "Holds", until=until) if suspension.until > now else _Now("unknown", "Over", until=until)


def sort_rows(rows: Sequence[RuleRow], sort: str) -> list[RuleRow]:
    """Return the rows in the order of a column, turned around by a `-`; those that act now first without one."""
    usual = sorted(rows, key=lambda row: (_RANKS.index(row.tone), row.kind, row.namespace, natural_key(row.name)))
    by = SORTS.get(sort.removeprefix("-"))
    return usual if by is None else sorted(usual, key=by, reverse=sort.startswith("-"))
