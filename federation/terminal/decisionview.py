"""Print one scheduling decision: its inputs, scores or rejection of every cluster, and the division of replicas.

`fedctl why` and `fedctl plan --explain` use it for the explanations of `scheduling/explain.py`. Names of triggers are
spelled out; `-o json` shows them as stored.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.scheduling.decisiontext import (
    amounts_text,
    common_scores,
    division_facts,
    division_steps,
    has_data,
    input_facts,
    reason_text,
    replicas_text,
    score_text,
    spread_facts,
    subset_facts,
    verdict,
    weights_of,
)
from federation.scheduling.explanations import ClusterRow, in_force, is_in_force, rows
from federation.scheduling.triggerwords import describe_deferral
from federation.terminal.printing import make_table, print_field, print_table, print_wrapped

_SAME_REJECTIONS_MAX = 10
"""Clusters to list per rejection reason; further ones are counted."""


def print_title(console: Console, target: str, namespace: str, outcome: str) -> None:
    """Print the first line: the object and the outcome of its decision."""
    where = f" in {namespace}" if namespace else ""
    console.print(f"[bold]{escape(target)}[/bold]{where}: [bold]{outcome}[/bold]")


def print_reason(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason of the decision; triggers of a deferred one are spelled out."""
    if reason := str(explanation.get("reason") or ""):
        print_field(console, "reason", describe_deferral(reason))


def print_inputs(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason and the inputs of a decision."""
    print_reason(console, explanation)
    for label, value in input_facts(explanation):
        print_field(console, label, value)


def print_scores(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the table of clusters, the topology spread and the division of replicas."""
    listed = [row for row in rows(explanation) if has_data(row)]
    if listed:
        console.print()
        common = common_scores(listed)
        print_table(console, _table(listed, common, explanation))
        if common:
            text = ", ".join(score_text(plugin, score, weights_of(explanation)) for plugin, score in common.items())
            print_wrapped(console, "same for all: ", text)
    _print_spread(console, explanation)
    _print_division(console, explanation)


def _table(listed: list[ClusterRow], common: Mapping[str, int], explanation: Mapping[str, Any]) -> Table:
    table = make_table()
    table.add_column("CLUSTER", no_wrap=True)
    for heading in ("REPLICAS", "BEFORE", "SCORE"):
        table.add_column(heading, justify="right")
    table.add_column("WHY", overflow="fold")
    weights, placed = weights_of(explanation), in_force(explanation)
    is_over = is_in_force(explanation)
    rejections: Counter[tuple[str, ...]] = Counter()
    for row in listed:
        if row.rejected_by and row.name not in placed:
            rejections[row.rejected_by, *row.reasons] += 1
            if rejections[row.rejected_by, *row.reasons] > _SAME_REJECTIONS_MAX:
                continue
        is_kept = row.name in placed and not is_over
        table.add_row(
            row.name,
            replicas_text(placed.get(row.name), is_present=row.name in placed),
            replicas_text(row.previous, is_present=row.was_selected),
            "-" if row.total is None else str(row.total),
            escape(reason_text(row, verdict(row, common, weights, is_over=is_over), is_kept=is_kept)),
        )
    for (plugin, *reasons), count in rejections.items():
        if count > _SAME_REJECTIONS_MAX:
            more = f"{count - _SAME_REJECTIONS_MAX} more"
            table.add_row(more, "-", "-", "-", escape(f"rejected by {plugin}: {'; '.join(reasons)}"))
    return table


def _print_spread(console: Console, explanation: Mapping[str, Any]) -> None:
    if not explanation.get("topology"):
        return
    console.print("\n[bold]topology spread[/bold]")
    for key, text, notes in spread_facts(explanation):
        print_wrapped(console, f"  {key}: ", text)
        for note in notes:
            print_wrapped(console, "    ", note)
    if because := explanation.get("unplacedBecause"):
        print_wrapped(console, "  ", f"{explanation['unplaced']} unplaced because of {because}")


def _print_division(console: Console, explanation: Mapping[str, Any]) -> None:
    division = explanation.get("division")
    if not division:
        return
    console.print("\n[bold]division[/bold]")
    for label, text in division_facts(division):
        print_field(console, label, text, width=11)
    if subsets := division.get("subsets"):
        print_field(console, "subsets", f"of WorkloadSpread {subsets['name']}", width=11)
        for label, text in subset_facts(subsets):
            print_wrapped(console, f"    {label}", text)
    for number, (name, text) in enumerate(division_steps(division), 1):
        print_field(console, f"{number}. {name}", text, width=len(str(number)) + 13)
    if overflow := division.get("overflow"):
        print_wrapped(console, "  ", f"unschedulable replicas kept: {amounts_text(overflow)}")
