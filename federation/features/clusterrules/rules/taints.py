"""The taints of a cluster that rules set, beside those of people and of the control plane. Pure.

The ruled taints are listed in an annotation of the cluster. A taint that somebody else has set is left alone, also when
a rule wants the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.clusters.ruledtaints import taint_id

CORDON = {"key": names.TAINT_UNSCHEDULABLE, "effect": "NoSchedule"}
"""The taint of `fedctl cordon`."""


class TaintPlan(NamedTuple):
    """The next taints of a cluster, and which of them are ruled."""

    taints: list[Mapping[str, Any]]
    ruled: frozenset[str]


def plan_ruled_taints(
    taints: Sequence[Mapping[str, Any]], ruled: frozenset[str], wanted: Iterable[Mapping[str, Any]], now: datetime
) -> TaintPlan:
    """Return the taints after the rules. Of several that want the same key and effect, the first decides the value."""
    by_id: dict[str, Mapping[str, Any]] = {}
    for taint in wanted:
        by_id.setdefault(taint_id(taint), taint)
    kept: list[Mapping[str, Any]] = []
    for taint in taints:
        name = taint_id(taint)
        if name not in ruled:
            kept.append(taint)
            by_id.pop(name, None)
        elif (same := by_id.get(name)) is not None:
            value = same.get("value")
            kept.append(taint if taint.get("value") == value else _with_value(taint, value))
            by_id[name] = {}
    present = {taint_id(taint) for taint in kept}
    added = [{**taint, "timeAdded": to_rfc3339(now)} for taint in by_id.values() if taint]
    return TaintPlan([*kept, *added], frozenset(name for name in by_id if name in present or by_id[name]))


def _with_value(taint: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    rest = {key: each for key, each in taint.items() if key != "value"}
    return {**rest, "value": value} if value else rest


def taint_problems(taints: Iterable[Mapping[str, Any]]) -> Iterable[tuple[int, str]]:
    """Yield the taints that rules may not set: their number, and why."""
    for index, taint in enumerate(taints):
        if str(taint.get("key") or "").startswith(names.TAINT_PREFIX):
            yield index, f"{taint['key']} is a taint of the control plane; choose another key"
