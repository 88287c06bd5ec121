"""`fedctl why --diff`: print the difference between two decisions about an object."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.scheduling.decisiondiff import ClusterDifference, DecisionDiff, compare
from federation.scheduling.explanations import ClusterRow, is_decided, kept_placement
from federation.scheduling.triggerwords import describe_triggers
from federation.terminal.decisionview import print_title
from federation.terminal.plaintext import to_age
from federation.terminal.printing import make_console, make_table, print_field, print_table


def print_difference(after: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Print the difference between two records of the journal."""
    console, now = make_console(), SystemClock().now()
    difference = compare(before["explanation"], after["explanation"])
    print_title(console, f"{after['kind'].lower()}/{after['name']}", after["namespace"], after["outcome"])
    ages = [to_age(now, from_rfc3339(record["at"])) for record in (after, before)]
    console.print(f"  decided   {ages[0]} ago; the previous one {ages[1]} ago")
    if because := after["explanation"].get("because"):
        print_field(console, "changed", describe_triggers(because))
    if difference.changed_inputs or difference.same_inputs:
        print_field(console, "inputs", _inputs(difference))
    for fact in difference.facts:
        print_field(console, fact.name, f"{fact.before or '-'} → {fact.after or '-'}")
    if kept := kept_placement(after["explanation"]):
        print_field(console, "stays", kept)
    if not is_decided(after["explanation"]):
        return
    console.print()
    if difference.clusters:
        print_table(console, _table(difference))
    if difference.unchanged:
        text = f"{to_count(difference.unchanged, 'cluster')} unchanged"
        console.print(f"\n{text}" if difference.clusters else text)
    elif not difference.clusters and not difference.facts:
        console.print("nothing differs")


def _inputs(difference: DecisionDiff) -> str:
    parts = []
    if difference.changed_inputs:
        parts.append(f"{', '.join(difference.changed_inputs)} changed")
    if difference.same_inputs:
        parts.append(f"{', '.join(difference.same_inputs)} unchanged")
    return "; ".join(parts)


def _table(difference: DecisionDiff) -> Table:
    table = make_table()
    table.add_column("CLUSTER", no_wrap=True)
    table.add_column("REPLICAS", justify="right", no_wrap=True)
    table.add_column("SCORE", justify="right", no_wrap=True)
    table.add_column("WHAT CHANGED", overflow="fold")
    for change in sorted(difference.clusters, key=lambda change: not _is_moved(change)):
        table.add_row(change.name, _replicas(change), _scores(change), escape("; ".join(change.changes)))
    return table


def _is_moved(change: ClusterDifference) -> bool:
    return _placed(change.before) != _placed(change.after)


def _placed(row: ClusterRow | None) -> str:
    if row is None or not row.is_selected:
        return "-"
    return "all" if row.replicas is None else str(row.replicas)


def _replicas(change: ClusterDifference) -> str:
    return _arrow(_placed(change.before), _placed(change.after))


def _scores(change: ClusterDifference) -> str:
    totals = ("-" if row is None or row.total is None else str(row.total) for row in (change.before, change.after))
    return _arrow(*totals)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
