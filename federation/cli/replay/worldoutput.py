"""Print what another world would have meant: both worlds side by side, by hour and by namespace."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.cli.replay.output import describe_change
from federation.plans.replays import COLUMNS, to_json
from federation.scheduling.replay.comparison import Comparison, Pair, Peak
from federation.scheduling.replay.logentries import from_us
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, make_table, print_table, print_wrapped

_NAMED_MAX = 20
_OPTIONAL = frozenset(("emissionsKg",))
"""Columns that are left out if no cluster has such a rate."""


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
    if teams := comparison.by_team():
        _print(console, "PROJECT", [(name or "none", pair) for name, pair in teams.items()])
    for each in comparison.different[:_NAMED_MAX]:
        print_wrapped(console, f"{to_rfc3339(from_us(each.at_us))} ", describe_change(each))
    if len(comparison.different) > _NAMED_MAX:
        console.print(f"and {len(comparison.different) - _NAMED_MAX} more; -o json has all of them")


def _print(console: Console, first: str, pairs: Iterable[tuple[str, Pair]]) -> None:
    listed, table = list(pairs), make_table()
    told = {column.key for column in COLUMNS for _, pair in listed if column.text(pair)}
    columns = [column for column in COLUMNS if column.key in told or column.key not in _OPTIONAL]
    for title in (first, *(column.title for column in columns)):
        table.add_column(title)
    for name, pair in listed:
        table.add_row(escape(name), *(column.text(pair) for column in columns))
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
