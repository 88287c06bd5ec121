"""Print what another world would have meant: both worlds side by side, by hour and by namespace."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.cli.replay.output import describe_change
from federation.planning.cost.rates import from_nano
from federation.scheduling.replay.comparison import Comparison, Pair, Peak, Side
from federation.scheduling.replay.logentries import from_us
from federation.scheduling.replay.otherworld import Twofold
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, make_table, print_table, print_wrapped

_NAMED_MAX = 20


@dataclass(frozen=True, slots=True)
class _Column:
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


_COLUMNS = (
    _Column("MOVES", "moves", lambda side: side.moves),
    _Column("MISSING-MINUTES", "missingReplicaMinutes", lambda side: side.missing_minutes, "{:.1f}"),
    _Column("CPU-HOURS", "cpuHours", lambda side: side.cpu_hours, "{:.1f}"),
    _Column("USE", "utilisation", lambda side: side.utilisation, "{:.1%}"),
    _Column("COST", "cost", lambda side: from_nano(round(side.cost)), "{:.2f}"),
    _Column("QUOTA", "quotaHits", lambda side: side.quota_hits),
    _Column("GUARD", "guardHits", lambda side: side.guard_hits),
)


def print_comparison(comparison: Comparison, output: str, took_s: float) -> None:
    """Print the totals, the worst time, hours, namespaces and the first decisions with another placement."""
    if output != "table":
        print_document(to_json(comparison), output)
        return
    console = make_console()
    if not comparison.decisions:
        console.print("no decision was recorded in this time")
        return
    made = to_count(comparison.decisions, "decision")
    console.print(f"{made} made again in {took_s:.2f} s: {len(comparison.different)} with another placement")
    if comparison.peak is not None:
        print_wrapped(console, "worst: ", _describe_peak(comparison.peak))
    console.print("recorded → in the other world")
    total = [("all", comparison.total())]
    hours = [(to_rfc3339(from_us(hour)), pair) for hour, pair in comparison.by_hour().items()]
    _print(console, "HOUR", [*total, *hours])
    namespaces = [(name or "cluster-scoped", pair) for name, pair in comparison.by_namespace().items()]
    _print(console, "NAMESPACE", namespaces)
    for each in comparison.different[:_NAMED_MAX]:
        print_wrapped(console, f"{to_rfc3339(from_us(each.at_us))} ", describe_change(each))
    if len(comparison.different) > _NAMED_MAX:
        console.print(f"and {len(comparison.different) - _NAMED_MAX} more; -o json has all of them")


def _print(console: Console, first: str, pairs: Iterable[tuple[str, Pair]]) -> None:
    table = make_table()
    for title in (first, *(column.title for column in _COLUMNS)):
        table.add_column(title)
    for name, pair in pairs:
        table.add_row(escape(name), *(column.text(pair) for column in _COLUMNS))
    print_table(console, table)


def _describe_peak(peak: Peak) -> str:
    named = ", ".join(
        f"{kind} {name}" + (f" in {namespace}" if namespace else "") + f" {count}"
        for namespace, kind, name, count in peak.objects
    )
    return (
        f"{peak.other} replicas without a cluster at {to_rfc3339(from_us(peak.at_us))}, recorded {peak.recorded};"
        f" more than recorded since {to_rfc3339(from_us(peak.since_us))}: {named}"
    )


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything as JSON values; keys are stable."""
    peak = comparison.peak
    return {
        "decisions": comparison.decisions,
        "total": _pair(comparison.total()),
        "byHour": [{"hour": to_rfc3339(from_us(at)), **_pair(pair)} for at, pair in comparison.by_hour().items()],
        "byNamespace": [{"namespace": name, **_pair(pair)} for name, pair in comparison.by_namespace().items()],
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
    values = {column.key: column.value(side) for column in _COLUMNS}
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
