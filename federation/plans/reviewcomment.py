"""A review as one Markdown comment for a pull or merge request, within the limit that forges have. Pure.

The verdict and the totals come first, then the objects that matter most. What does not fit is counted. Names, reasons
and messages come from manifests, and so from anybody: `markdown.py` keeps them text.
"""

from collections.abc import Iterable, Iterator, Sequence

from federation.apimachinery.amounts import first_of, to_count
from federation.plans.markdown import code
from federation.plans.review import HOURS_PER_MONTH, Review, approvals_of, lost_in_all, replicas_before
from federation.scheduling.whatif.planresult import Action, Cost, MemberPlan, ObjectPlan, Plan, total_costs

MARKER = "<!-- fedctl review -->"
"""The first line, by which a job finds its earlier comment to replace it."""
LENGTH_MAX = 65_536
"""Characters of a comment on GitHub. GitLab and Gitea allow more."""
_CLUSTERS_MAX = 8
_LINES_MAX = 20
"""Objections, approvals, notes and problems, each."""
_CLOSING = 400
"""Characters that the last lines need."""


def to_comment(review: Review, length_max: int = LENGTH_MAX) -> str:
    """Return the comment, at most `length_max` characters long, with a line feed at its end."""
    budget = _Budget(length_max - _CLOSING)
    budget.add(MARKER, f"### Federation review{f' of {code(review.change, 80)}' if review.change else ''}", "")
    budget.add(_verdict(review), "")
    budget.add_list("Against it", (_objection(review, *each) for each in review.objections()))
    plan = review.plan
    if plan is not None:
        budget.add(*_totals(plan), "")
        budget.add_list("Approvals needed", map(code, approvals_of(plan)))
        _add_objects(budget, plan)
        budget.add_list("Problems", map(code, plan.problems))
        budget.add_list("Stays as it is", map(_unchanged, plan.unchanged))
    budget.add_list("Left out", map(code, review.notes))
    if plan is not None:
        budget.close(f"{to_count(plan.examined, 'object')} examined. `fedctl plan -f FILE --diff` shows the manifests.")
    return budget.text()


class _Budget:
    """Lines of a comment, as long as there is room. What has none is counted."""

    def __init__(self, length_max: int) -> None:
        self._lines: list[str] = []
        self._left = length_max

    def add(self, *lines: str) -> bool:
        """Add lines, all or none; return whether there was room."""
        length = sum(len(line) + 1 for line in lines)
        if length > self._left:
            return False
        self._left -= length
        self._lines += lines
        return True

    def add_list(self, title: str, items: Iterable[str]) -> None:
        """Add a list under a title; nothing for an empty list."""
        listed = list(items)
        if not listed or not self.add(f"**{title}**", ""):
            return
        shown = 0
        for item in listed[:_LINES_MAX]:
            if not self.add(f"- {item}"):
                break
            shown += 1
        if shown < len(listed):
            self._lines.append(f"- and {len(listed) - shown} more")
        self._lines.append("")

    def close(self, line: str) -> None:
        """Add the last line, which has room."""
        self._lines.append(line)

    def text(self) -> str:
        """Return the comment."""
        return "\n".join(self._lines).rstrip() + "\n"


def _verdict(review: Review) -> str:
    if review.plan is None:
        return "**Cannot be applied.** The change could not be computed."
    if not review.is_passed:
        return "**Does not pass.**"
    if not review.plan.changed:
        return "**Passes.** Nothing changes in any cluster."
    return "**Passes.**" + (" It needs approvals." if approvals_of(review.plan) else "")


def _objection(review: Review, reason: str, message: str) -> str:
    return f"{reason}{' (allowed)' if reason in review.allowed else ''}: {code(message, 1_000)}"


def _totals(plan: Plan) -> Iterator[str]:
    counts = plan.summary()
    yield "| | |"
    yield "|---|---|"
    objects = [
        to_count(counts[key], "object") + f" {what}"
        for key, what in (
            ("created", "created"),
            ("placedOtherwise", "rescheduled"),
            ("contentOnly", "with changed content"),
            ("deleted", "deleted"),
            ("withdrawn", "removed from all clusters"),
        )
        if counts[key]
    ]
    yield f"| objects | {', '.join(objects) or 'none changes'} |"
    moves = [f"{counts[key]} {what}" for key, what in _MOVES if counts[key]]
    yield f"| replicas | {', '.join(moves) or 'none moves'} |"
    lost, replicas = lost_in_all(plan)
    yield f"| missing at worst | {lost} of {to_count(replicas, 'replica')} |"
    for measure, cost in total_costs(plan.changed).items():
        yield f"| {_MEASURES.get(measure, measure)} per month | {_monthly(measure, cost)} |"
    yield f"| guard | {_guard(plan)} |"


_MOVES = (
    ("replicasMoved", "move"),
    ("replicasStarted", "start"),
    ("replicasStopped", "stop"),
    ("unplaced", "unplaced"),
)
_MEASURES = {"price": "price", "carbon": "emissions"}
_GRAMS_PER_KG = 1_000


def _guard(plan: Plan) -> str:
    held = sum(len(hold.objects) for hold in plan.holds)
    return f"holds {to_count(held, 'move')} until an approval" if held else "lets everything go on"


def _monthly(measure: str, cost: Cost) -> str:
    unit, divisor = ("", 1) if measure == "price" else (" kg CO2e", _GRAMS_PER_KG)
    before, after = (amount * HOURS_PER_MONTH / divisor for amount in (cost.before, cost.after))
    text = f"{before:,.2f} → {after:,.2f}{unit} ({after - before:+,.2f})"
    unknown = [code(name) for name in cost.unknown]
    return f"{text}; not known for {first_of(unknown, _CLUSTERS_MAX)}" if unknown else text


def _add_objects(budget: _Budget, plan: Plan) -> None:
    changed = sorted(plan.changed, key=_rank)
    if not changed or not budget.add("| object | | clusters | missing at worst | |", "|---|---|---|---|---|"):
        return
    held = {key: hold.cause for hold in plan.holds for key in hold.objects}
    for shown, obj in enumerate(changed):
        cause = held.get((obj.namespace, obj.federated_name), "")
        if not budget.add(_row(obj, cause)):
            budget.close(f"| and {to_count(len(changed) - shown, 'object')} more | | | | |")
            break
    budget.close("")


def _rank(obj: ObjectPlan) -> tuple[object, ...]:
    """Return the order of objects: the worst first."""
    trouble = obj.is_stuck or obj.unplaced > obj.unplaced_before or bool(obj.waiting)
    return not trouble, -obj.lost, obj.resource.kind, obj.namespace, obj.name


def _row(obj: ObjectPlan, held_for: str) -> str:
    where = f" in {code(obj.namespace)}" if obj.namespace else ""
    lost = f"{obj.lost} of {replicas_before(obj)}" if obj.lost else "none" if replicas_before(obj) else ""
    remarks = [f"held by the guard for {code(held_for)}"] if held_for else []
    notes = dict.fromkeys(row.note for row in obj.rows if row.note)
    remarks += [code(text) for text in (*_reasons(obj), *obj.problems, *notes)]
    if obj.waves:
        waves = (f"{code(wave)}{_in_wave(obj, wave, clusters)}" for wave, clusters in obj.waves)
        remarks.append(f"waves: {' then '.join(list(waves)[:_CLUSTERS_MAX])}")
    cells = (f"{code(obj.target)}{where}", _title(obj), _clusters(obj.rows), lost, "; ".join(remarks))
    return f"| {' | '.join(cells)} |"


def _reasons(obj: ObjectPlan) -> Iterator[str]:
    if obj.reason and obj.action is not Action.DELETE:
        yield obj.reason
    if obj.unplaced:
        yield f"{to_count(obj.unplaced, 'replica')} unplaced"
    if obj.waiting:
        yield f"{to_count(obj.waiting, 'replica')} placed that fit on no node now"


def _in_wave(obj: ObjectPlan, wave: str, clusters: Sequence[str]) -> str:
    listed = f" ({first_of([code(name) for name in clusters], _CLUSTERS_MAX)})" if clusters else ""
    return f"{' after an approval' if wave in obj.approvals else ''}{listed}"


def _title(obj: ObjectPlan) -> str:
    if obj.action is Action.CHANGE:
        return "rescheduled" if obj.is_placed_otherwise else "content"
    return {Action.CREATE: "created", Action.DELETE: "deleted", Action.WITHDRAW: "removed"}.get(obj.action, "")


def _clusters(rows: Sequence[MemberPlan]) -> str:
    """Return the clusters that change, those with the largest difference first."""
    changed = sorted((row for row in rows if row.is_changed), key=lambda row: (-abs(row.delta), row.cluster))
    shown = [_cluster(row) for row in changed]
    return first_of(shown, _CLUSTERS_MAX)


def _cluster(row: MemberPlan) -> str:
    before, after = (None if copy is None else copy.replicas for copy in (row.before, row.after))
    if row.after is not None and row.after.error:
        return f"{code(row.cluster)} not applied: {code(row.after.error)}"
    if before is None and after is None:
        change = "changes" if row.before and row.after else "added" if row.after else "removed"
    elif row.before is not None and row.after is not None and before == after:
        change = f"{after}"
    else:
        change = f"{'-' if before is None else before} → {'-' if after is None else after}"
    return f"{code(row.cluster)} {change}"


def _unchanged(obj: ObjectPlan) -> str:
    reason = "; ".join(filter(None, (obj.reason, *obj.problems))) or "as before"
    where = f" in {code(obj.namespace)}" if obj.namespace else ""
    return f"{code(obj.target)}{where}: {code(reason)}"
