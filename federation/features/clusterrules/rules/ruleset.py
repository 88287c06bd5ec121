"""All rules of the host, and what follows from them for one cluster. Pure."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.resources import CLUSTER_TAINT_POLICIES
from federation.apimachinery import conditions
from federation.features.clusterrules.names import CLUSTER_RULES
from federation.features.clusterrules.rules.matching import UNREADABLE, Matching, Verdict, compile_matching
from federation.features.clusterrules.rules.states import (
    Entry,
    State,
    Times,
    advance,
    entries_of,
    is_forgotten,
    left_s,
    to_text,
    with_half_left,
)
from federation.features.clusterrules.rules.taints import CORDON, plan_ruled_taints
from federation.planning.clusters.ruledtaints import ruled_taints, taint_id

MATCHES_NONE = Matching(frozenset(("",)), {}, None, (), ())


@dataclass(frozen=True, slots=True)
class Webhook:
    """A request of a Remedy."""

    url: str
    ca_data: bytes
    timeout_s: float
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled ClusterTaintPolicy or Remedy; `problem` says why it cannot be read, and freezes its states."""

    name: str
    """Kind and name."""
    matching: Matching = MATCHES_NONE
    times: Times = Times(0, 0)  # noqa: RUF009  # frozen
    most: int | str = "50%"
    taints: tuple[Mapping[str, Any], ...] = ()
    is_removed_by_people: bool = False
    events: tuple[str, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    cuts_traffic: bool = False
    problem: str = ""

    def has_place(self, active: int, selected: int) -> bool:
        """Return whether it may become active in one more cluster, beside so many of those that it selects."""
        if isinstance(self.most, int):
            return active < self.most
        return active < -(-int(self.most.removesuffix("%")) * selected // 100)


@dataclass(frozen=True, slots=True)
class Change:
    """A step of a rule in a cluster: it became active, or ended."""

    rule: Rule
    is_active: bool


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The next annotations and taints of a cluster, what has changed, and when to look again."""

    annotations: Mapping[str, str | None]
    taints: list[Mapping[str, Any]]
    changes: tuple[Change, ...]
    recheck_s: float | None
    is_changed: bool


def rule_name(source: Mapping[str, Any], kind: str) -> str:
    """Return kind and name of a rule."""
    return f"{kind}/{source['metadata']['name']}"


def compile_rule(source: Mapping[str, Any], kind: str) -> Rule:
    """Return the compiled form of a ClusterTaintPolicy or Remedy."""
    name, spec = rule_name(source, kind), source.get("spec") or {}
    try:
        actions = spec.get("actions") or ()
        by_type = {each["type"]: [one for one in actions if one["type"] == each["type"]] for each in actions}
        taints = [_taint(each) for each in spec.get("taints") or ()]
        taints += [_taint(each["taint"]) for each in by_type.get("Taint", ())]
        most = spec.get("maxClusters", "50%")
        return Rule(
            name,
            compile_matching(spec),
            Times(float(spec.get("holdSeconds", 60)), float(spec.get("clearSeconds", 300))),
            most if isinstance(most, int) else f"{int(str(most).removesuffix('%'))}%",
            (*taints, *([CORDON] if "Cordon" in by_type else ())),
            kind == CLUSTER_TAINT_POLICIES.kind and spec.get("removal") == "Manual",
            tuple(str(each.get("message") or "") for each in by_type.get("Event", ())),
            tuple(map(_webhook, by_type.get("Webhook", ()))),
            "CutTraffic" in by_type,
        )
    except UNREADABLE as error:
        return Rule(name, problem=str(error) or type(error).__name__)


def _webhook(action: Mapping[str, Any]) -> Webhook:
    source = action["webhook"]
    ca_data = base64.b64decode(str(source.get("caBundle") or ""), validate=True)
    message = str(action.get("message") or "")
    return Webhook(str(source["url"]), ca_data, float(source.get("timeoutSeconds", 10)), message)


def _taint(source: Mapping[str, Any]) -> Mapping[str, Any]:
    taint = {"key": str(source["key"]), "effect": str(source["effect"])}
    return {**taint, "value": str(source["value"])} if source.get("value") else taint


def is_ruled(cluster: Mapping[str, Any]) -> bool:
    """Return whether rules apply to a FederatedCluster: it has joined and is not leaving."""
    found = (cluster.get("status") or {}).get("conditions")
    return conditions.is_true(found, names.CLUSTER_JOINED) and not cluster["metadata"].get("deletionTimestamp")


def record_of(cluster: Mapping[str, Any]) -> dict[str, Entry]:
    """Return the states of rules in a cluster by rule."""
    return entries_of((cluster["metadata"].get("annotations") or {}).get(CLUSTER_RULES))


def plan_cluster(
    cluster: Mapping[str, Any],
    rules: Iterable[Rule],
    others: Iterable[Mapping[str, Any]],
    now: datetime,
    *,
    was_away: bool = False,
) -> ClusterPlan:
    """Return what the rules make of a cluster; `others` are the other FederatedClusters.

    `was_away`: for some time no process has looked at the cluster.
    """
    before, taints = record_of(cluster), list((cluster.get("spec") or {}).get("taints") or ())
    ruled, ready = ruled_taints(cluster), [each for each in others if is_ruled(each)]
    entries: dict[str, Entry] = {}
    changes: list[Change] = []
    wanted: list[Mapping[str, Any]] = []
    cutting: list[str] = []
    times: list[float] = []
    for rule in sorted(rules, key=lambda rule: rule.name):
        entry = before.get(rule.name, Entry())
        if was_away:
            entry = with_half_left(entry, rule.times, now)
        entry = _next_entry(rule, cluster, entry, ready, ruled, now)
        if entry.is_in_force is not before.get(rule.name, Entry()).is_in_force:
            changes.append(Change(rule, entry.is_in_force))
        if entry.is_in_force:
            wanted += rule.taints if not rule.problem else [each for each in taints if taint_id(each) in ruled]
            cutting += [rule.name] if rule.cuts_traffic else []
        if not is_forgotten(entry, now):
            entries[rule.name] = entry
        if (left := left_s(entry, rule.times, now)) is not None:
            times.append(left)
    plan = plan_ruled_taints(taints, ruled, wanted, now)
    annotations = {
        CLUSTER_RULES: to_text(entries),
        names.RULED_TAINTS: ",".join(sorted(plan.ruled)) or None,
        names.TRAFFIC_CUT: ",".join(cutting) or None,
    }
    present = cluster["metadata"].get("annotations") or {}
    is_changed = plan.taints != taints or any(present.get(key) != value for key, value in annotations.items())
    return ClusterPlan(annotations, plan.taints, tuple(changes), min(times, default=None), is_changed)


def _next_entry(
    rule: Rule,
    cluster: Mapping[str, Any],
    entry: Entry,
    others: Iterable[Mapping[str, Any]],
    ruled: frozenset[str],
    now: datetime,
) -> Entry:
    if rule.problem:
        return entry
    if not rule.matching.selects(cluster):
        return Entry(State.CALM, now if entry.told else None, entry.told) if entry.state is not State.CALM else entry
    verdict = rule.matching.judge(cluster)
    if rule.is_removed_by_people and verdict is not Verdict.HOLDS and entry.is_in_force:
        is_there = any(taint_id(taint) in ruled and _has(cluster, taint) for taint in rule.taints)
        return entry if is_there else Entry()
    if entry.is_in_force or verdict is not Verdict.HOLDS:
        return advance(entry, verdict, rule.times, now, has_place=True)
    selected = [each for each in others if rule.matching.selects(each)]
    active = sum(record_of(each).get(rule.name, Entry()).is_in_force for each in selected)
    return advance(entry, verdict, rule.times, now, has_place=rule.has_place(active, len(selected) + 1))


def _has(cluster: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    return any(taint_id(each) == taint_id(taint) for each in (cluster.get("spec") or {}).get("taints") or ())
