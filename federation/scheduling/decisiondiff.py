"""The difference between two decisions about one object, by field and by cluster.

It compares parsed explanations (`explanations.py`), also those of older versions and of impossible decisions without
clusters. Inputs are compared by hash, if both explanations have them. Pure; `fedctl why --diff` prints it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from federation.scheduling.explanations import ClusterRow, in_force, is_decided, rows
from federation.scheduling.triggerwords import describe_deferral

_NO_ROW = ClusterRow("")


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field whose values differ; "" where an explanation does not have it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """A cluster with different results: its rows, None for a decision without the cluster, and the changes."""

    name: str
    before: ClusterRow | None
    after: ClusterRow | None
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionDiff:
    """The differences; `unchanged` counts the clusters with equal results."""

    facts: tuple[FieldDifference, ...]
    changed_inputs: tuple[str, ...]
    same_inputs: tuple[str, ...]
    clusters: tuple[ClusterDifference, ...]
    unchanged: int

    def to_json(self) -> dict[str, Any]:
        """Return it as values that orjson and YAML can write."""
        return asdict(self)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> DecisionDiff:
    """Return the differences between the explanations of an earlier and a later decision."""
    old_inputs, new_inputs = before.get("inputs") or {}, after.get("inputs") or {}
    noted = sorted(old_inputs.keys() | new_inputs.keys()) if old_inputs and new_inputs else []
    changed = tuple(name for name in noted if old_inputs.get(name) != new_inputs.get(name))
    old_rows, new_rows = (_rows_in_force(explanation) for explanation in (before, after))
    names = dict.fromkeys((*new_rows, *old_rows)) if "clusters" in before and "clusters" in after else {}
    found = [_compare_cluster(name, old_rows.get(name), new_rows.get(name), before, after) for name in names]
    return DecisionDiff(
        facts=tuple(_compare_facts(before, after)),
        changed_inputs=changed,
        same_inputs=tuple(name for name in noted if name not in changed),
        clusters=tuple(change for change in found if change.changes),
        unchanged=sum(not change.changes for change in found),
    )


def _rows_in_force(explanation: Mapping[str, Any]) -> dict[str, ClusterRow]:
    """Return the rows by cluster with the placement in force, also for an unsuccessful decision."""
    placed = in_force(explanation)
    return {
        row.name: replace(row, is_selected=row.name in placed, replicas=placed.get(row.name))
        for row in rows(explanation)
    }


def _compare_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldDifference]:
    old, new = _facts(before), _facts(after)
    both = is_decided(before) and is_decided(after)
    for name in dict.fromkeys((*old, *new)):
        if not both and (name not in old or name not in new):
            continue  # Without a decision the field is absent, which is no change.
        if old.get(name, "") != new.get(name, ""):
            yield FieldDifference(name, old.get(name, ""), new.get(name, ""))


def _facts(explanation: Mapping[str, Any]) -> dict[str, str]:
    unit, policy = explanation.get("unit") or {}, explanation.get("policy") or {}
    weights = (explanation.get("division") or {}).get("weights") or {}
    facts = {
        "outcome": explanation.get("outcome"),
        "reason": describe_deferral(str(explanation.get("reason") or "")),
        "policy": "/".join(filter(None, (policy.get("namespace"), policy.get("name")))),
        "profile": explanation.get("profile"),
        "mode": unit.get("mode"),
        "replicas": unit.get("desiredReplicas"),
        "request": _amounts(unit.get("request") or {}),
        "weights by": weights.get("by"),
        "without a place": explanation.get("unplaced"),
    }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _amounts(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts))


def _compare_cluster(
    name: str,
    old: ClusterRow | None,
    new: ClusterRow | None,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> ClusterDifference:
    changes: list[str] = []
    if old is None or name not in before["clusters"]:
        changes.append("joined")
    if new is None or name not in after["clusters"]:
        changes.append("left")
    was, now = old or _NO_ROW, new or _NO_ROW
    if (was.rejected_by, was.reasons) != (now.rejected_by, now.reasons):
        said = f"rejected by {now.rejected_by}: {'; '.join(now.reasons)}" if now.rejected_by else "not rejected"
        changes.append(f"{said} (was {_refusal(was)})" if was.rejected_by else said)
    if was.is_selected != now.is_selected:
        changes.append("selected" if now.is_selected else "not selected any more")
    elif was.replicas != now.replicas:
        changes.append("more replicas" if (now.replicas or 0) > (was.replicas or 0) else "fewer replicas")
    for plugin in dict.fromkeys((*now.scores, *was.scores)):
        scores = [row.scores.get(plugin, (None, None))[1] for row in (was, now)]
        if scores[0] != scores[1] and None not in scores:
            changes.append(f"{plugin} {scores[0]} → {scores[1]}")
    for label, part in (("weight", "weights"), ("room", "room")):
        amounts = [_of_division(explanation, part, name) for explanation in (before, after)]
        if amounts[0] != amounts[1] and None not in amounts:
            changes.append(f"{label} {amounts[0]} → {amounts[1]}")
    return ClusterDifference(name, old, new, tuple(changes))


def _refusal(row: ClusterRow) -> str:
    return f"by {row.rejected_by}: {'; '.join(row.reasons)}"


def _of_division(explanation: Mapping[str, Any], part: str, cluster: str) -> Any:
    values = (explanation.get("division") or {}).get(part) or {}
    amounts = values.get("values" if part == "weights" else "replicas") or {}
    return amounts.get(cluster)
