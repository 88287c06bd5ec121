"""Hand over state: values of the last status of a copy, written as labels, annotations or fields of the next one. Pure.

The status is what a member reports, so its values are limited: scalars only, short, and what a label cannot hold is
left out. The host's admission judges the copies with them as it judges what users override.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery import dotpaths, jsonpath, nameformats
from federation.apimachinery.resources import Object
from federation.planning.failover.application import (
    Scalar,
    State,
    StateRule,
    handed_states,
    handed_text,
    record_of,
)

_VALUE_LENGTH_MAX = 4096
_REPLICAS = ("spec.replicas", "spec.parallelism")
_RESERVED = ("kubeadmiral.io", "kubernetes.io", "k8s.io")
"""Domains of labels and annotations that have a meaning for the federation or for Kubernetes."""


def path_problem(path: str) -> str:
    """Return what is wrong with a JSONPath, "" if it can be evaluated."""
    steps = jsonpath.parse(path)
    if not steps or any(kind == "field" and any(map(str.isspace, name)) for kind, name in steps):
        return "fields, indexes and equality filters are supported, such as {.jobStatus.savepoints[0].path}"
    return "it has a wildcard, and one value is handed over" if ("all", None) in steps else ""


def target_problem(rule: StateRule) -> str:
    """Return why a rule must not write its target, "" if it may."""
    if rule.field_path in _REPLICAS:
        return f"{rule.field_path} is the scheduler's; choose another field"
    domain = (rule.label or rule.annotation).rpartition("/")[0]
    if any(domain == each or domain.endswith(f".{each}") for each in _RESERVED):
        return f"labels and annotations of {domain} belong to the system; choose another domain"
    return ""


def rule_problems(rules: Sequence[StateRule]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with rules: the field below `spec.failover.application`, and why."""
    targets = []
    for index, rule in enumerate(rules):
        at = f"statePreservation.rules[{index}]"
        if problem := path_problem(rule.json_path):
            yield f"{at}.jsonPath", problem
        name = "aliasLabelName" if rule.label else "annotation" if rule.annotation else "fieldPath"
        target = (name, rule.label or rule.annotation or rule.field_path)
        if problem := target_problem(rule):
            yield f"{at}.{name}", problem
        if target in targets:
            yield f"{at}.{name}", "an earlier rule writes this target; give each rule one of its own"
        targets.append(target)


def state_of(rules: tuple[StateRule, ...], source: str, member: Mapping[str, Any]) -> tuple[State | None, list[str]]:
    """Return what the rules find in a member object's status, None for nothing; and the paths without usable values."""
    status = member.get("status")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    fields: dict[str, Scalar] = {}
    missing = []
    for rule in rules:
        value = _value(status, rule.json_path)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if value is None or target_problem(rule) or (rule.label and nameformats.label_value(text)):
            missing.append(rule.json_path)
        elif rule.label:
            labels[rule.label] = text
        elif rule.annotation:
            annotations[rule.annotation] = text
        else:
            fields[rule.field_path] = value
    found = State(source, labels, annotations, fields) if labels or annotations or fields else None
    return found, missing


def describe_missing(cluster: str, paths: Sequence[str]) -> str:
    """Return what is said of paths without usable values in the status of a copy."""
    return f"its status in {cluster} has no usable value at {', '.join(paths)}, which is not handed over"


def merged(old: State | None, new: State | None) -> State | None:
    """Return what is handed over after another move: newer values win, and those that nothing consumed yet stay."""
    if old is None or new is None:
        return new or old
    return State(
        new.source,
        {**old.labels, **new.labels},
        {**old.annotations, **new.annotations},
        {**old.fields, **new.fields},
    )


def handed_entry(
    federated: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], left: Sequence[State] = ()
) -> str | None:
    """Return the annotation with the state that each copy carries, for a placement that follows `before`.

    A copy keeps what it got for as long as it stays: to take a value back would change what runs. A new copy gets the
    state of one that leaves, of those in `left` in turn, over that of an unhealthy application which is not used yet.
    """
    states = {name: each for name, each in handed_states(federated).items() if name in after}
    state = record_of(federated).state
    for index, name in enumerate(sorted(after.keys() - before.keys())):
        found = merged(state, left[index % len(left)] if left else None)
        if found is not None:
            states[name] = found
    return handed_text(states)


def with_state(obj: Object, state: State) -> Object:
    """Return a copy of the object with the state; what is not changed is shared."""
    metadata = dict(obj["metadata"])
    for part, entries in (("labels", state.labels), ("annotations", state.annotations)):
        if entries:
            metadata[part] = {**(metadata.get(part) or {}), **entries}
    result = {**obj, "metadata": metadata}
    for path, value in state.fields.items():
        _set(result, dotpaths.split(path), value)
    return result


def _value(status: Any, path: str) -> Scalar | None:
    found = jsonpath.find(status, path) if not path_problem(path) else []
    value = found[0] if len(found) == 1 else None
    if isinstance(value, str):
        return value if len(value) <= _VALUE_LENGTH_MAX and value else None
    return value if isinstance(value, bool | int | float) else None


def _set(obj: Object, path: dotpaths.Path, value: Scalar) -> None:
    for key in path[:-1]:
        parent = obj.get(key)
        obj[key] = obj = dict(parent) if isinstance(parent, dict) else {}
    obj[path[-1]] = value
