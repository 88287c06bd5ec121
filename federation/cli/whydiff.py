"""`fedctl why --diff`: what changed from one decision about an object to the next, on the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from federation.base.clock import SystemClock, from_rfc3339
from federation.cli.decisions import print_title
from federation.cli.printing import a_table, print_field, print_table, to_age, to_console, to_count
from federation.scheduling.comparison import ClusterChange, Comparison, compare
from federation.scheduling.explain import ClusterRow, is_decided, kept_placement
from federation.scheduling.triggers import describe_triggers


def print_difference(after: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Print two records of the journal, compared."""
    console, now = to_console(), SystemClock().now()
    difference = compare(before["explanation"], after["explanation"])
    print_title(console, f"{after['kind'].lower()}/{after['name']}", after["namespace"], after["outcome"])
    ages = [to_age(now, from_rfc3339(record["at"])) for record in (after, before)]
    console.print(f"  decided   {ages[0]} ago; the one before {ages[1]} ago")
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
        text = f"{to_count(difference.unchanged, 'cluster')} fared the same"
        console.print(f"\n{text}" if difference.clusters else text)
    elif not difference.clusters and not difference.facts:
        console.print("nothing differs")


def _inputs(difference: Comparison) -> str:
    parts = []
    if difference.changed_inputs:
        parts.append(f"{', '.join(difference.changed_inputs)} changed")
    if difference.same_inputs:
        parts.append(f"{', '.join(difference.same_inputs)} the same")
    return "; ".join(parts)


def _table(difference: Comparison) -> Table:
    table = a_table()
    table.add_column("CLUSTER", no_wrap=True)
    table.add_column("REPLICAS", justify="right", no_wrap=True)
    table.add_column("SCORE", justify="right", no_wrap=True)
    table.add_column("WHAT CHANGED", overflow="fold")
    for change in sorted(difference.clusters, key=lambda change: not _is_moved(change)):
        table.add_row(change.name, _replicas(change), _scores(change), escape("; ".join(change.changes)))
    return table


def _is_moved(change: ClusterChange) -> bool:
    return _placed(change.before) != _placed(change.after)


def _placed(row: ClusterRow | None) -> str:
    if row is None or not row.is_selected:
        return "-"
    return "all" if row.replicas is None else str(row.replicas)


def _replicas(change: ClusterChange) -> str:
    return _arrow(_placed(change.before), _placed(change.after))


def _scores(change: ClusterChange) -> str:
    totals = ("-" if row is None or row.total is None else str(row.total) for row in (change.before, change.after))
    return _arrow(*totals)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
