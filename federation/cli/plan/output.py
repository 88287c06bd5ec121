"""Print a plan: a table of clusters for each changed object, then the clusters' free resources, then the totals.

The plan comes from `scheduling/whatif/planresult.py`. Unchanged objects take one line per reason. Tables fit 80
columns; long reasons are wrapped.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.apimachinery.amounts import first_of, to_amount, to_count
from federation.planning.waitingjobs import describe_alternatives
from federation.plans.diffs import to_diff
from federation.plans.edits import describe_object
from federation.plans.review import hold_text
from federation.scheduling.decisiontext import to_cost
from federation.scheduling.whatif.planresult import Action, ClusterResource, MemberObject, MemberPlan, ObjectPlan, Plan
from federation.terminal.decisionview import print_inputs, print_scores
from federation.terminal.printing import make_table, print_field, print_table, print_wrapped

_NAMED_MAX = 5
"""Unchanged objects to name per reason."""


def print_plan(
    console: Console, plan: Plan, *, has_diffs: bool, is_explained: bool, objects_max: int, took: str
) -> None:
    """Print the plan; `took` is the line about computing time."""
    for problem in plan.problems:
        print_wrapped(console, "note: ", problem)
    changed = plan.changed
    for obj in changed[:objects_max]:
        _print_object(console, obj, has_diffs=has_diffs, is_explained=is_explained)
    if len(changed) > objects_max:
        console.print(f"… and {len(changed) - objects_max} more; --limit 0 prints all, -o json has all\n")
    _print_unchanged(console, plan.unchanged, is_explained=is_explained)
    for hold in plan.holds:
        print_wrapped(console, "held: ", f"{hold_text(hold)}; `fedctl approve` lets them go on")
    for entry in plan.stranded:
        print_wrapped(
            console,
            "",
            f"{entry.cluster} down: {to_count(entry.objects, 'object')} with {to_count(entry.replicas, 'replica')}"
            f" {'stays' if entry.objects == 1 else 'stay'} assigned to it, because a cluster that does not respond"
            f" keeps its placements. To see them move, add --taint {entry.cluster}=KEY:NoExecute.",
        )
        console.print()
    if plan.cluster_resources:
        print_table(console, _cluster_table(plan.cluster_resources))
        console.print()
    for line in (*to_summary(plan), *(to_costs(plan) if is_explained else ())):
        console.print(line)
    console.print(f"[dim]{took}[/dim]")


def to_summary(plan: Plan) -> list[str]:
    """Return the last lines: the numbers of changed objects, moved replicas and unplaced replicas."""
    counts = plan.summary()
    if not plan.changed:
        lines = ["[bold]nothing changes[/bold] in any member"]
    else:
        parts = [
            f"{to_count(counts[key], 'object')} {what}"
            for key, what in (
                ("created", "created"),
                ("placedOtherwise", "rescheduled"),
                ("contentOnly", "with changed content"),
                ("deleted", "deleted"),
                ("withdrawn", "removed from all clusters"),
            )
            if counts[key]
        ]
        moves = [
            f"{to_count(counts[key], 'replica')} {what}{'s' if counts[key] == 1 else ''}"
            for key, what in (("replicasMoved", "move"), ("replicasStarted", "start"), ("replicasStopped", "stop"))
            if counts[key]
        ]
        lines = ["[bold]" + ", ".join(parts) + ("; " + ", ".join(moves) if moves else "") + "[/bold]"]
    if counts["unplaced"]:
        lines.append(f"[bold]{to_count(counts['unplaced'], 'replica')} unplaced[/bold]")
    if counts["waiting"]:
        lines.append(f"[bold]{to_count(counts['waiting'], 'replica')} placed that fit on no node now[/bold]")
    if counts["stuck"]:
        lines.append(f"[bold]{to_count(counts['stuck'], 'object')} cannot be scheduled[/bold], for the reasons above")
    return lines


def to_costs(plan: Plan) -> list[str]:
    """Return what the changed objects cost per hour together, before and after, by measure; [] without rates."""
    costs = [(obj.explanation or {}).get("costs") or {} for obj in plan.changed]
    lines = []
    for measure in dict.fromkeys(measure for cost in costs for measure in cost):
        before, after = (sum(cost[measure][when] for cost in costs if measure in cost) for when in ("before", "after"))
        lines.append(f"{measure} per hour: {to_cost(measure, before)} before, {to_cost(measure, after)} after")
    return lines


def _print_object(console: Console, obj: ObjectPlan, *, has_diffs: bool, is_explained: bool) -> None:
    where = f" in {obj.namespace}" if obj.namespace else ""
    console.print(f"[bold]{escape(obj.target)}[/bold]{where}: {_title(obj)}")
    if is_explained and obj.explanation is not None:
        print_inputs(console, obj.explanation)
    elif obj.reason and obj.action is not Action.DELETE:
        print_wrapped(console, "  ", obj.reason)
    for problem in obj.problems:
        print_field(console, "note:", problem, width=6)
    if obj.unplaced:
        before = f" (now {obj.unplaced_before})" if obj.unplaced_before else ""
        console.print(f"  {to_count(obj.unplaced, 'replica')} unplaced{before}")
    if is_explained and obj.explanation is not None:
        print_scores(console, obj.explanation)
    if not (is_explained and (obj.explanation or {}).get("clusters")):
        print_table(console, _object_table(obj))
    for number, (wave, clusters) in enumerate(obj.waves, 1):
        print_wrapped(
            console, f"  wave {number} ", f"{wave}: {', '.join(clusters) or 'no cluster, waits for approval'}"
        )
    if has_diffs:
        _print_diffs(console, obj)
    console.print()


def _title(obj: ObjectPlan) -> str:
    if obj.action is Action.CHANGE:
        return "rescheduled" if obj.is_placed_otherwise else "content changes"
    return _TITLES.get(obj.action, "unchanged")


_TITLES = {Action.CREATE: "created", Action.DELETE: "deleted", Action.WITHDRAW: "removed from all clusters"}


def _object_table(obj: ObjectPlan) -> Table:
    table = make_table()
    table.add_column("  CLUSTER", no_wrap=True)
    for heading in ("BEFORE", "AFTER", "+/-"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    unchanged = [row for row in obj.rows if not row.is_changed]
    for row in obj.rows:
        if row.is_changed:
            table.add_row(f"  {row.cluster}", _cell(row.before), _cell(row.after), _delta(row), escape(_remark(row)))
    if unchanged:
        replicas = [row.after.replicas for row in unchanged if row.after is not None]
        has_replicas = any(count is not None for count in replicas)
        total = str(sum(count or 0 for count in replicas)) if has_replicas else "yes"
        label = f"  {unchanged[0].cluster}" if len(unchanged) == 1 else f"  {len(unchanged)} others"
        table.add_row(label, total, total, "", "")
    return table


def _cell(copy: MemberObject | None) -> str:
    if copy is None:
        return "-"
    return "yes" if copy.replicas is None else str(copy.replicas)


def _delta(row: MemberPlan) -> str:
    return f"{row.delta:+d}" if row.delta else ""


def _remark(row: MemberPlan) -> str:
    remarks = []
    if row.after is not None and row.after.error:
        remarks.append(f"not applied: {row.after.error}")
    elif row.before is not None and row.after is not None and not row.delta:
        remarks.append("content changes")
    if row.note:
        remarks.append(row.note)
    return "; ".join(remarks)


def _print_diffs(console: Console, obj: ObjectPlan) -> None:
    """Print a unified diff per cluster, the same diff once for all of its clusters."""
    clusters_by_diff: dict[str, list[str]] = {}
    for row in obj.rows:
        if row.is_changed:
            clusters_by_diff.setdefault("\n".join(to_diff(row)), []).append(row.cluster)
    for text, clusters in clusters_by_diff.items():
        console.print(f"\n[bold]{escape(', '.join(clusters))}[/bold]")
        for line in text.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            console.print(line, style=style, markup=False, soft_wrap=True)


def _print_unchanged(console: Console, objects: Sequence[ObjectPlan], *, is_explained: bool) -> None:
    """Print the unchanged objects, grouped by reason."""
    reasons: dict[tuple[str, ...], list[ObjectPlan]] = {}
    for obj in objects:
        reason = "; ".join(filter(None, (obj.reason, *obj.problems))) or "as before"
        unplaced = f" ({to_count(obj.unplaced, 'replica')} unplaced)" if obj.unplaced else ""
        reasons.setdefault((reason + unplaced, *describe_alternatives(obj.alternatives)), []).append(obj)
    for (reason, *alternatives), group in reasons.items():
        named = [describe_object(obj.resource, obj.namespace, obj.name) for obj in group]
        print_wrapped(console, "unchanged: ", first_of(named, _NAMED_MAX))
        print_wrapped(console, "  ", reason)
        for line in alternatives:
            print_field(console, "deadline:", line, width=10)
        if is_explained and group[0].explanation is not None:
            print_scores(console, group[0].explanation)
        console.print()


def _cluster_table(resources: Iterable[ClusterResource]) -> Table:
    table = make_table()
    table.add_column("CLUSTER", no_wrap=True)
    table.add_column("RESOURCE", no_wrap=True)
    for heading in ("ALL", "FREE NOW", "FREE THEN"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for entry in resources:
        table.add_row(
            entry.cluster,
            entry.resource,
            *(to_amount(entry.resource, value) for value in (entry.allocatable, entry.before, entry.after)),
            "[bold]too much[/bold]" if entry.after < 0 else "",
        )
    return table
