"""A plan for people: per object a table of clusters before and after, then what clusters have free, then the sums.

It prints what `scheduling/whatif/result.py` holds and decides nothing. Objects that stay as they are appear in one line
per reason. Wide enough for 80 columns; long reasons are wrapped.
"""

import difflib
from collections.abc import Iterable, Sequence

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.api.resources import Object
from federation.cli.decisions import print_facts, print_scores
from federation.cli.printing import a_table, print_field, print_table, print_wrapped, to_amount, to_count
from federation.scheduling.whatif.result import Action, Copy, ObjectPlan, Plan, Room, Row

_NAMED_MAX = 5
"""Objects that are named per reason for which nothing changes."""


def print_plan(
    console: Console, plan: Plan, *, has_diffs: bool, is_explained: bool, objects_max: int, took: str
) -> None:
    """Print all of it; `took` says how long it took."""
    for problem in plan.problems:
        print_wrapped(console, "note: ", problem)
    changed = plan.changed
    for obj in changed[:objects_max]:
        _print_object(console, obj, has_diffs=has_diffs, is_explained=is_explained)
    if len(changed) > objects_max:
        console.print(f"… and {len(changed) - objects_max} more; --limit 0 prints all, -o json has all\n")
    _print_unchanged(console, plan.unchanged, is_explained=is_explained)
    for entry in plan.stranded:
        print_wrapped(
            console,
            "",
            f"{entry.cluster} down: {to_count(entry.objects, 'object')} with {to_count(entry.replicas, 'replica')}"
            f" {'stays' if entry.objects == 1 else 'stay'} assigned to it. A cluster that does not answer keeps what"
            f" it has; with --taint {entry.cluster}=KEY:NoExecute you see where they would go.",
        )
        console.print()
    if plan.rooms:
        print_table(console, _room_table(plan.rooms))
        console.print()
    for line in to_summary(plan):
        console.print(line)
    console.print(f"[dim]{took}[/dim]")


def to_summary(plan: Plan) -> list[str]:
    """Return the last lines: what moves, and what finds no place."""
    counts = plan.summary()
    if not plan.changed:
        lines = ["[bold]nothing changes[/bold]: no member gets anything else than it has"]
    else:
        parts = [
            f"{to_count(counts[key], 'object')} {what}"
            for key, what in (
                ("created", "created"),
                ("placedOtherwise", "placed otherwise"),
                ("contentOnly", "changed in place"),
                ("deleted", "deleted"),
                ("withdrawn", "taken out of all clusters"),
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
        lines.append(f"[bold]{to_count(counts['unplaced'], 'replica')} without a place[/bold]")
    if counts["waiting"]:
        lines.append(f"[bold]{to_count(counts['waiting'], 'replica')} beyond the room: no node for them now[/bold]")
    if counts["stuck"]:
        lines.append(
            f"[bold]{to_count(counts['stuck'], 'object')} cannot be scheduled then[/bold], for the reasons above"
        )
    return lines


def _print_object(console: Console, obj: ObjectPlan, *, has_diffs: bool, is_explained: bool) -> None:
    where = f" in {obj.namespace}" if obj.namespace else ""
    console.print(f"[bold]{escape(obj.target)}[/bold]{where}: {_title(obj)}")
    if is_explained and obj.explanation is not None:
        print_facts(console, obj.explanation)
    elif obj.reason and obj.action is not Action.DELETE:
        print_wrapped(console, "  ", obj.reason)
    for problem in obj.problems:
        print_field(console, "note:", problem, width=6)
    if obj.unplaced:
        before = f" (now {obj.unplaced_before})" if obj.unplaced_before else ""
        console.print(f"  {to_count(obj.unplaced, 'replica')} without a place{before}")
    if is_explained and obj.explanation is not None:
        print_scores(console, obj.explanation)
    if not (is_explained and (obj.explanation or {}).get("clusters")):
        print_table(console, _object_table(obj))
    if has_diffs:
        _print_diffs(console, obj)
    console.print()


def _title(obj: ObjectPlan) -> str:
    if obj.action is Action.CHANGE:
        return "placed otherwise" if obj.is_placed_otherwise else "changed in place"
    return _TITLES.get(obj.action, "as it is")


_TITLES = {Action.CREATE: "created", Action.DELETE: "deleted", Action.WITHDRAW: "taken out of all clusters"}


def _object_table(obj: ObjectPlan) -> Table:
    table = a_table()
    table.add_column("  CLUSTER", no_wrap=True)
    for heading in ("BEFORE", "AFTER", "+/-"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    same = [row for row in obj.rows if not row.is_changed]
    for row in obj.rows:
        if row.is_changed:
            table.add_row(f"  {row.cluster}", _cell(row.before), _cell(row.after), _delta(row), escape(_remark(row)))
    if same:
        kept = sum((row.after.replicas or 0) for row in same if row.after is not None)
        total = str(kept) if any(row.after and row.after.replicas is not None for row in same) else "yes"
        label = f"  {same[0].cluster}" if len(same) == 1 else f"  {len(same)} others"
        table.add_row(label, total, total, "", "")
    return table


def _cell(copy: Copy | None) -> str:
    if copy is None:
        return "-"
    return "yes" if copy.replicas is None else str(copy.replicas)


def _delta(row: Row) -> str:
    return f"{row.delta:+d}" if row.delta else ""


def _remark(row: Row) -> str:
    remarks = []
    if row.after is not None and row.after.error:
        remarks.append(f"not applied: {row.after.error}")
    elif row.before is not None and row.after is not None and not row.delta:
        remarks.append("content changes")
    if row.note:
        remarks.append(row.note)
    return "; ".join(remarks)


def _print_diffs(console: Console, obj: ObjectPlan) -> None:
    """Print a unified diff per cluster; clusters with the same one share it."""
    shared: dict[str, list[str]] = {}
    for row in obj.rows:
        if row.is_changed:
            shared.setdefault("\n".join(to_diff(row)), []).append(row.cluster)
    for text, clusters in shared.items():
        console.print(f"\n[bold]{escape(', '.join(clusters))}[/bold]")
        for line in text.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            console.print(line, style=style, markup=False, soft_wrap=True)


def to_diff(row: Row) -> list[str]:
    """Return the lines of the unified diff of a cluster's manifests, without the two lines of file names."""
    before, after = (copy.manifest if copy is not None else {} for copy in (row.before, row.after))
    old, new = _yaml(_masked(before, after, "before")), _yaml(_masked(after, before, "after"))
    return list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]


def _masked(manifest: Object, other: Object, side: str) -> Object:
    """Return the manifest without a Secret's values; as in `kubectl diff` it shows only whether they differ."""
    if manifest.get("kind") != "Secret" or not manifest.get("data"):
        return manifest
    others = other.get("data") or {}
    hidden = {
        key: "***" if others.get(key, value) == value else f"*** ({side})" for key, value in manifest["data"].items()
    }
    return {**manifest, "data": hidden}


def _yaml(manifest: Object) -> list[str]:
    return yaml.safe_dump(manifest, sort_keys=True).splitlines() if manifest else []


def _print_unchanged(console: Console, objects: Sequence[ObjectPlan], *, is_explained: bool) -> None:
    """Print why objects stay as they are, one line per reason."""
    reasons: dict[str, list[ObjectPlan]] = {}
    for obj in objects:
        why = "; ".join(filter(None, (obj.reason, *obj.problems))) or "as before"
        unplaced = f" ({obj.unplaced} replicas without a place)" if obj.unplaced else ""
        reasons.setdefault(why + unplaced, []).append(obj)
    for why, held in reasons.items():
        named = ", ".join(_where(obj) for obj in held[:_NAMED_MAX])
        more = f" and {len(held) - _NAMED_MAX} more" if len(held) > _NAMED_MAX else ""
        print_wrapped(console, "as it is: ", f"{named}{more}")
        print_wrapped(console, "  ", why)
        if is_explained and held[0].explanation is not None:
            print_scores(console, held[0].explanation)
        console.print()


def _where(obj: ObjectPlan) -> str:
    return f"{obj.target} in {obj.namespace}" if obj.namespace else obj.target


def _room_table(rooms: Iterable[Room]) -> Table:
    table = a_table()
    table.add_column("CLUSTER", no_wrap=True)
    table.add_column("RESOURCE", no_wrap=True)
    for heading in ("ALL", "FREE NOW", "FREE THEN"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for room in rooms:
        table.add_row(
            room.cluster,
            room.resource,
            *(to_amount(room.resource, value) for value in (room.allocatable, room.before, room.after)),
            "[bold]too much[/bold]" if room.after < 0 else "",
        )
    return table
