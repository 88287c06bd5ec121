"""What another world would have meant, as values: both worlds side by side, by hour, by namespace and by team. Pure.

`fedctl replay` prints it, and the web UI draws it.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.planning.cost.rates import from_nano
from federation.scheduling.chain import Chain
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.replay.comparison import Comparison, Pair, Side
from federation.scheduling.replay.logentries import Chunk, from_us, read
from federation.scheduling.replay.otherworld import Changes, Twofold, redecide_elsewhere


@dataclass(frozen=True, slots=True)
class Column:
    """A number of a world: its title in tables, its key in JSON, and how it is written."""

    title: str
    key: str
    value: Callable[[Side], float | None]
    form: str = "{:.0f}"

    def text(self, pair: Pair) -> str:
        """Return both numbers, or one if they are equal."""
        first, second = (self._text(side) for side in (pair.recorded, pair.other))
        return first if first == second else f"{first} → {second}"

    def _text(self, side: Side) -> str:
        value = self.value(side)
        return "" if value is None else self.form.format(value)


def _emissions_kg(side: Side) -> float | None:
    """Return the emissions, None if no cluster has a rate."""
    return from_nano(round(side.emissions)) / 1000 if side.emissions else None


COLUMNS = (
    Column("MOVES", "moves", lambda side: side.moves),
    Column("MISSING-MINUTES", "missingReplicaMinutes", lambda side: side.missing_minutes, "{:.1f}"),
    Column("CPU-HOURS", "cpuHours", lambda side: side.cpu_hours, "{:.1f}"),
    Column("USE", "utilisation", lambda side: side.utilisation, "{:.1%}"),
    Column("COST", "cost", lambda side: from_nano(round(side.cost)), "{:.2f}"),
    Column("CO2-KG", "emissionsKg", _emissions_kg, "{:.3f}"),
    Column("QUOTA", "quotaHits", lambda side: side.quota_hits),
    Column("GUARD", "guardHits", lambda side: side.guard_hits),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The decisions that count: from `since_us` to `until_us`, of a namespace, kinds (group, kind), and a project.

    Others are decided again, too, because they take room. "" and None select all. Decisions from before the namespace
    was in its project are about clusters of others.
    """

    since_us: int
    until_us: int
    namespace: str = ""
    kinds: AbstractSet[tuple[str, str]] | None = None
    project: str = ""

    def has(self, decision: Twofold) -> bool:
        """Return whether the decision counts."""
        if self.namespace and decision.key[0] != self.namespace:
            return False
        if self.project and decision.team != self.project:
            return False
        template = decision.projected["template"]
        group = str(template.get("apiVersion") or "").rpartition("/")[0]
        return self.kinds is None or (group, str(template.get("kind"))) in self.kinds


def compare(
    chunks: Iterable[Chunk],
    changes: Changes,
    selection: Selection,
    now_us: int,
    installed: PluginRegistry,
    chain: Chain,
) -> Comparison:
    """Decide again in another world; one segment after the other, because placements are carried forward."""
    comparison = Comparison()
    again = redecide_elsewhere(read(chunks), installed, chain, changes, selection.since_us, selection.until_us)
    for each in again:
        if selection.has(each):
            comparison.add(each)
    comparison.finish(min(selection.until_us, now_us))
    return comparison


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything as JSON values; keys are stable."""
    peak = comparison.peak
    return {
        "decisions": comparison.decisions,
        "total": _pair(comparison.total()),
        "byHour": [{"hour": to_rfc3339(from_us(at)), **_pair(pair)} for at, pair in comparison.by_hour().items()],
        "byNamespace": [{"namespace": name, **_pair(pair)} for name, pair in comparison.by_namespace().items()],
        "byTeam": [{"project": name, **_pair(pair)} for name, pair in comparison.by_team().items()],
        "worst": None
        if peak is None
        else {
            "at": to_rfc3339(from_us(peak.at_us)),
            "since": to_rfc3339(from_us(peak.since_us)),
            "recorded": peak.recorded,
            "other": peak.other,
            "objects": [
                {"namespace": namespace, "kind": kind, "name": name, "missing": count}
                for namespace, kind, name, count in peak.objects
            ],
        },
        "different": [_decision(each) for each in comparison.different],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {"recorded": _side(pair.recorded), "other": _side(pair.other)}


def _side(side: Side) -> dict[str, float]:
    values = {column.key: column.value(side) for column in COLUMNS}
    return {key: round(value, 6) for key, value in values.items() if value is not None}


def _decision(each: Twofold) -> dict[str, Any]:
    template = each.projected["template"]
    return {
        "at": to_rfc3339(from_us(each.at_us)),
        "namespace": each.key[0],
        "kind": template.get("kind"),
        "name": (template.get("metadata") or {}).get("name"),
        "policy": each.policy,
        "recorded": {"outcome": each.recorded.outcome, "placements": dict(each.recorded_after)},
        "other": {
            "outcome": each.other.outcome,
            "reason": each.other.reason,
            "placements": dict(each.other_after),
        },
    }
