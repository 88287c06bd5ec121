"""The taints that rules will set and remove once they have waited, for plans of rules and of clusters. Pure.

The rules run ahead in time until nothing waits any more: from one moment at which one of them has something to do to
the next.

Decision: docs/decisions/0159-plans-run-rules-ahead.md
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from federation.api.resources import CLUSTER_TAINT_POLICIES, FEDERATED_CLUSTERS, REMEDIES
from federation.apimachinery.resources import Object
from federation.features.clusterrules.rules.ruleset import (
    Rule,
    compile_rule,
    is_ruled,
    plan_cluster,
    record_of,
)
from federation.features.clusterrules.rules.states import State
from federation.scheduling.whatif.state import ObjectChange, ObjectSet

_KINDS = (CLUSTER_TAINT_POLICIES, REMEDIES)
_STEPS_MAX = 64
_AHEAD = timedelta(days=14)
"""Twice the longest time that a rule may wait."""


def forecast_rules(
    changes: Sequence[ObjectChange], after: ObjectSet, now: datetime
) -> tuple[list[ObjectChange], list[str]]:
    """Return the changes of taints that follow from changes of rules and clusters, and sentences about them.

    `after` are the objects after the changes. Each change of a cluster has its present version as `before`.
    """
    if not any(change.resource in (*_KINDS, FEDERATED_CLUSTERS) for change in changes):
        return [], []
    rules = [compile_rule(each, kind.kind) for kind in _KINDS for each in after.list(kind)]
    clusters: dict[str, Object] = {each["metadata"]["name"]: each for each in after.list(FEDERATED_CLUSTERS)}
    first = dict(clusters)
    texts = [f"{rule.name} cannot be read: {rule.problem}" for rule in rules if rule.problem]
    texts += _run_ahead(clusters, rules, now)
    for rule in rules:
        waiting = [name for name in sorted(clusters) if _waits(clusters[name], rule)]
        if waiting:
            texts.append(f"{rule.name} stays out of {', '.join(waiting)}: maxClusters allows no more")
    known = {change.name: change.before for change in changes if change.resource == FEDERATED_CLUSTERS}
    derived = [
        ObjectChange(FEDERATED_CLUSTERS, "", name, known.get(name, first[name]), cluster)
        for name, cluster in clusters.items()
        if cluster["spec"].get("taints") != first[name]["spec"].get("taints")
    ]
    return derived, texts


def _run_ahead(clusters: dict[str, Object], rules: Sequence[Rule], now: datetime) -> list[str]:
    """Let time pass for the clusters; return what the rules do, one sentence per rule and time."""
    texts, when = [], now
    for _ in range(_STEPS_MAX):
        steps: dict[tuple[str, bool], list[str]] = {}
        waits: list[float] = []
        for name in sorted(filter(lambda each: is_ruled(clusters[each]), clusters)):
            plan = plan_cluster(clusters[name], rules, [clusters[each] for each in clusters if each != name], when)
            if plan.is_changed:
                clusters[name] = _written(clusters[name], plan.annotations, plan.taints)
            for change in plan.changes:
                steps.setdefault((change.rule.name, change.is_active), []).append(name)
            waits += [] if plan.recheck_s is None else [plan.recheck_s]
        taints = {rule.name: ", ".join(map(_text, rule.taints)) or "no taint" for rule in rules}
        delay = f"after {(when - now).total_seconds():g} s" if when > now else "at once"
        for (rule, is_active), where in steps.items():
            what = f"is active in {', '.join(where)} ({taints[rule]})" if is_active else f"ends in {', '.join(where)}"
            texts.append(f"{rule} {what} {delay}")
        if (not waits and not steps) or when - now > _AHEAD:
            break
        when += timedelta(seconds=max(1.0, min(waits, default=1.0)))
    return texts


def _written(cluster: Object, annotations: Mapping[str, str | None], taints: Iterable[Any]) -> Object:
    metadata = cluster["metadata"]
    merged = {**(metadata.get("annotations") or {}), **annotations}
    kept = {key: value for key, value in merged.items() if value is not None}
    return {
        **cluster,
        "metadata": {**metadata, "annotations": kept},
        "spec": {**cluster["spec"], "taints": list(taints)},
    }


def _waits(cluster: Mapping[str, Any], rule: Rule) -> bool:
    entry = record_of(cluster).get(rule.name)
    return entry is not None and entry.state is State.PENDING


def _text(taint: Mapping[str, Any]) -> str:
    return f"{taint['key']}:{taint['effect']}"
