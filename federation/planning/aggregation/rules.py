"""The fields of a source's status that the rules of its FederatedTypeConfig compute (docs/reference/status.md). Pure.

A rule is an expression over `source` and `members`. The engine comes in as a function, because it belongs to the API
server. Members report what they like: what one of them reports is limited in size, and a status that an expression
cannot evaluate counts as empty, as that of a new object. A rule that still fails keeps its field as it is, and the
problem is reported. `aggregators.py` has the merge that rules are applied to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api.federatedtype import StatusRule
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import FederationError
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, keep_condition_times, status_of
from federation.planning.aggregation.mergedconditions import is_ours

MEMBER_BYTES_MAX = 16 * 1024
"""Of one member's status, in bytes of JSON. The memory of an expression grows with its input and has no other limit."""
MEMBERS_BYTES_MAX = 512 * 1024
"""Of all members' statuses: with more than 32 clusters, each may have less than `MEMBER_BYTES_MAX`."""
SOURCE_BYTES_MAX = 256 * 1024
VALUE_BYTES_MAX = 32 * 1024
"""Of the value of one rule."""
_CONDITIONS_MAX = 50
_CLUSTERS_NAMED_MAX = 5
_CONDITIONS = ("status", "conditions")
_CONDITION_STATUSES = ("True", "False", "Unknown")

Evaluate = Callable[[Mapping[str, Any]], Any]
"""Evaluates a compiled expression for the values of its variables; RuleError."""
Compile = Callable[[str], Evaluate]
"""Compiles an expression; RuleError."""
HasTime = Callable[[], bool]
"""Returns whether the time for the rules of one object is not over yet."""


class RuleError(FederationError):
    """The expression does not compile, or has no usable value for these objects; the message says why."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The status with the fields of all rules, and with their present values instead; and what went wrong."""

    status: Object
    fallback: Object
    problems: tuple[str, ...] = ()


def apply_rules(
    rules: Sequence[StatusRule],
    compile_: Compile,
    has_time: HasTime,
    merged: Mapping[str, Any],
    source: Mapping[str, Any],
    members: Members,
    context: Context,
) -> Computed:
    """Return the merged status with the fields of the rules.

    `members` are the member objects by cluster; a cluster of the placement without one has an empty status.
    """
    status, fallback = dict(merged), dict(merged)
    for rule in rules:
        present = dotpaths.get(source, rule.path)
        _set(status, rule.path[1:], present)
        _set(fallback, rule.path[1:], present)
    found, problems = _member_entries(members, context)
    shown = {field: source[field] for field in ("apiVersion", "kind", "spec", "status") if field in source}
    shown["metadata"] = {k: v for k, v in (source.get("metadata") or {}).items() if k in _METADATA}
    if _size(shown) > SOURCE_BYTES_MAX:
        text = f"the object is larger than {SOURCE_BYTES_MAX // 1024} KiB, so its status rules are not evaluated"
        return Computed(status, fallback, (text,))
    for index, rule in enumerate(rules):
        field = f"spec.statusAggregation.rules[{index}].expression"
        try:
            value, ignored = _evaluate(compile_(rule.expression), shown, found, has_time)
            _set(status, rule.path[1:], _checked(rule, value, source, context))
        except RuleError as error:
            problems.append(f"{field}: {error}")
            continue
        if ignored:
            text = f"it fails for the status in clusters [{_named(ignored)}], which counts as empty"
            problems.append(f"{field}: {text}")
    return Computed(status, fallback, tuple(problems))


_METADATA = frozenset({"name", "namespace", "labels", "annotations", "generation"})


def _member_entries(members: Members, context: Context) -> tuple[list[Object], list[str]]:
    """Return the variable `members`, and the problem of statuses that are too large."""
    clusters = sorted(context.placed or members)
    bytes_max = min(MEMBER_BYTES_MAX, MEMBERS_BYTES_MAX // max(1, len(clusters)))
    entries: list[Object] = []
    large = []
    for cluster in clusters:
        member = members.get(cluster) or {}
        status = status_of(member)
        if _size(status) > bytes_max:
            large.append(cluster)
            status = {}
        generation = (member.get("metadata") or {}).get("generation")
        entries.append(
            {
                "cluster": cluster,
                "generation": generation if type(generation) is int else 0,
                "stale": cluster in context.stale,
                "status": status,
            }
        )
    if not large:
        return entries, []
    return entries, [f"the status in clusters [{_named(large)}] is larger than {bytes_max} bytes and counts as empty"]


def _evaluate(
    evaluate: Evaluate, source: Object, members: list[Object], has_time: HasTime
) -> tuple[Any, tuple[str, ...]]:
    """Return the value, and the clusters whose status counts as empty because the expression fails for it.

    Those are the ones for which it fails alone, or else the one with the largest status.
    """
    if not has_time():
        raise RuleError("the time limit for the rules of one object is exceeded")
    try:
        return evaluate({"source": source, "members": members}), ()
    except RuleError as error:
        reported = [member for member in members if member["status"]]
        if not reported:
            raise
        failing = [m for m in reported if has_time() and not _holds(evaluate, source, [m])]
        failing = failing or [max(reported, key=lambda member: _size(member["status"]))]
        names = tuple(member["cluster"] for member in failing)
        rest = [{**member, "status": {}} if member["cluster"] in names else member for member in members]
        if not has_time():
            raise RuleError("the time limit for the rules of one object is exceeded") from error
        try:
            return evaluate({"source": source, "members": rest}), names
        except RuleError:
            # An expression that does not take an empty status either; if it fails for all, the members are not why.
            where = "" if len(names) == len(reported) else f"the status in clusters [{_named(names)}]: "
            raise RuleError(f"{where}{error}") from error


def _holds(evaluate: Evaluate, source: Object, members: list[Object]) -> bool:
    try:
        evaluate({"source": source, "members": members})
    except RuleError:
        return False
    return True


def _checked(rule: StatusRule, value: Any, source: Mapping[str, Any], context: Context) -> Any:
    """Return the value as it is stored; RuleError if it cannot be."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise RuleError(f"the value has no JSON form: {error}") from error
    if len(text) > VALUE_BYTES_MAX:
        raise RuleError(f"the value is larger than {VALUE_BYTES_MAX // 1024} KiB")
    value = orjson.loads(text)
    return _checked_conditions(value, source, context) if rule.path == _CONDITIONS and value is not None else value


def _checked_conditions(value: Any, source: Mapping[str, Any], context: Context) -> list[Object]:
    if not isinstance(value, list) or len(value) > _CONDITIONS_MAX:
        raise RuleError(f"the value has to be a list of at most {_CONDITIONS_MAX} conditions")
    types = set()
    for entry in value:
        texts = [entry.get(key, "") for key in ("type", "reason", "message")] if isinstance(entry, dict) else [None]
        if not texts[0] or not all(isinstance(text, str) for text in texts) or texts[0] in types:
            raise RuleError("every condition has to have a type of its own, and texts as reason and message")
        if entry.get("status") not in _CONDITION_STATUSES:
            raise RuleError(f'condition {texts[0]}: its status has to be "True", "False" or "Unknown"')
        types.add(texts[0])
    previous = status_of(source).get("conditions") or []
    wanted = [{k: v for k, v in entry.items() if k != "lastTransitionTime"} for entry in value]
    kept = [condition for condition in previous if is_ours(condition) and condition.get("type") not in types]
    return [*keep_condition_times(previous, wanted, context.now), *kept]


def _set(status: Object, path: dotpaths.Path, value: Any) -> None:
    """Set the field at the path, or remove it for None; parents are copied, because statuses may share them."""
    for key in path[:-1]:
        parent = status.get(key)
        if value is None and not isinstance(parent, dict):
            return
        status[key] = status = dict(parent) if isinstance(parent, dict) else {}
    if value is None:
        status.pop(path[-1], None)
    else:
        status[path[-1]] = value


def _named(clusters: Sequence[str]) -> str:
    return ",".join(clusters[:_CLUSTERS_NAMED_MAX]) + (",…" if len(clusters) > _CLUSTERS_NAMED_MAX else "")


def _size(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return MEMBERS_BYTES_MAX + 1  # nested too deeply
