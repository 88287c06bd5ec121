"""Fold the repeated keys of lists that Kubernetes accepts in a create, and refuses in a server-side apply. Pure.

A pod may name an environment variable, port, pull secret or host alias twice: validation allows it, but such a list is
a map for server-side apply, by which members are written. What Kubernetes does with the repetition is done here: the
last variable wins, the names of one address add up, equal entries are one. Entries that contradict each other stay, and
the object is created and patched instead (`delivery/members/operations.py`); the host warns about every repetition.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.apimachinery import dotpaths
from federation.apimachinery.resources import Object

_POD_SPECS: tuple[dotpaths.Path, ...] = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
Items = Sequence[Any]
Fold = Callable[[Items], list[Any]]


def without_repeated_keys(obj: Object) -> Object:
    """Return the object without repeated keys, sharing what stays; the object itself if there is nothing to fold."""
    if obj.get("kind") == "ServiceAccount":
        return _with_folded(obj, _FOLDS_OF_ACCOUNT)
    for path in _POD_SPECS:
        spec = dotpaths.get(obj, path)
        if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
            folded = _fold_pod(dict(spec))
            return obj if folded == spec else _replaced(obj, path, folded)
    return obj


def _replaced(obj: Object, path: dotpaths.Path, value: Any) -> Object:
    head, rest = path[0], path[1:]
    return {**obj, head: _replaced(obj[head], rest, value) if rest else value}


def _fold_pod(spec: Object) -> Object:
    result = _with_folded(spec, _FOLDS_OF_POD)
    for field in _CONTAINERS:
        if isinstance(listed := spec.get(field), list):
            result[field] = [
                _with_folded(each, _FOLDS_OF_CONTAINER) if isinstance(each, dict) else each for each in listed
            ]
    return result


def _with_folded(obj: Object, folds: Mapping[str, tuple[tuple[str, ...], Fold]]) -> Object:
    result = dict(obj)
    for field, (keys, fold) in folds.items():
        listed = obj.get(field)
        if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
            identities = [_identity(each, keys) for each in listed]
            if len(set(identities)) < len(identities):
                result[field] = fold(listed)
    return result


def _identity(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(item.get(key) or ("TCP" if key == "protocol" else "")) for key in keys)


def _merging(*keys: str, adding: str = "") -> Fold:
    """Return a fold that unites entries of one key that do not contradict each other; lists named `adding` add up."""

    def fold(items: Items) -> list[Any]:
        found: dict[tuple[str, ...], list[Object]] = {}
        for item in items:
            entries = found.setdefault(_identity(item, keys), [])
            at = next((index for index, each in enumerate(entries) if _agree(each, item, adding)), None)
            if at is None:
                entries.append(item)
            else:
                entries[at] = _united(entries[at], item, adding)
        return [entry for entries in found.values() for entry in entries]

    return fold


def _agree(one: Object, other: Object, adding: str) -> bool:
    return all(one.get(key, value) == value for key, value in other.items() if key not in (adding, "protocol"))


def _united(one: Object, other: Object, adding: str) -> Object:
    united = {**one, **other}
    if adding and (adding in one or adding in other):
        united[adding] = list(dict.fromkeys([*(one.get(adding) or ()), *(other.get(adding) or ())]))
    return united


def _fold_env(items: Items) -> list[Any]:
    """Return the variables with the last value of each name, at the place of the last.

    `$(NAME)` is the value that NAME has at that place: a reference to a value that goes is replaced by it. If that
    value comes from elsewhere, nothing is folded.
    """
    names = [str(item.get("name")) for item in items]
    last = {name: index for index, name in enumerate(names)}
    current: dict[str, str | None] = {}
    folded = []
    for index, item in enumerate(items):
        name, value = names[index], item.get("value")
        if isinstance(value, str) and "$(" in value:
            value = _expanded(value, current)
            if value is None:
                return list(items)
            item = {**item, "value": value}  # noqa: PLW2901  # the variable with its references replaced
        if last[name] == index:
            folded.append(item)
            current.pop(name, None)
        else:
            current[name] = None if "valueFrom" in item else str(value or "")
    return folded


def _expanded(value: str, current: Mapping[Any, str | None]) -> str | None:
    """Return the text with the current values in the place of references to them, None if one is not known."""
    if any(match[1] in current and current[match[1]] is None for match in _REFERENCE.finditer(value)):
        return None
    return _REFERENCE.sub(lambda match: match[0] if (found := current.get(match[1])) is None else found, value)


_FOLDS_OF_POD: Mapping[str, tuple[tuple[str, ...], Fold]] = {
    "imagePullSecrets": (("name",), _merging("name")),
    "hostAliases": (("ip",), _merging("ip", adding="hostnames")),
}
_FOLDS_OF_CONTAINER: Mapping[str, tuple[tuple[str, ...], Fold]] = {
    "env": (("name",), _fold_env),
    "ports": (("containerPort", "protocol"), _merging("containerPort", "protocol")),
}
_FOLDS_OF_ACCOUNT: Mapping[str, tuple[tuple[str, ...], Fold]] = {"secrets": (("name",), _merging("name"))}
