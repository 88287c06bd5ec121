"""The pods that an object starts, by component, according to the rules of its kind. Pure.

A rule (`api/components.py`) says where an object describes a component; `pods_of` reads the number of its pods, and
what each of them needs as a pod spec. Nothing here knows a kind. What an object leaves out that its operator or a
webhook fills in later is unknown, so the demand is a lower bound unless the rule has the default.

Decision: docs/decisions/0110-which-objects-are-gangs.md
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from federation.api.components import ComponentRule, Components, Factor, FieldValue, Request
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.quantity import Quantity, parse

COMPONENTS_MAX = 256
"""Components of one object: deciding about it costs time for each."""
_PODS_MAX = 2**31 - 1
_JAVA_SUFFIXES = {"k": "Ki", "kb": "Ki", "m": "Mi", "mb": "Mi", "g": "Gi", "gb": "Gi", "t": "Ti", "tb": "Ti"}
_PERCENT = 100


class ComponentError(InvalidInput):
    """The object has more components than are counted; the message is for its author."""


@dataclass(frozen=True, slots=True)
class ComponentPods:
    """The pods of one component: how many, how many of them must run at the same time, and the spec of each.

    The spec has only what decides on which nodes a pod runs, in the types that it must have.
    """

    name: str
    count: int
    least: int
    pod: Mapping[str, Any]


def pods_of(template: Mapping[str, Any], components: Components) -> tuple[ComponentPods, ...]:
    """Return the pods of an object by component, those without pods left out; ComponentError."""
    found: list[ComponentPods] = []
    for rule in components.rules:
        for name, part in _parts(template, rule):
            pods = _pods(name, part, rule)
            if pods is not None and pods.count:
                if len(found) >= COMPONENTS_MAX:
                    raise ComponentError(
                        f"it has more than {COMPONENTS_MAX} components; divide it into several objects"
                    )
                found.append(pods)
    return tuple(found)


def pod_specs_of(template: Mapping[str, Any], components: Components) -> Iterator[Mapping[str, Any]]:
    """Yield the pod spec of each component as the object has it, at most `COMPONENTS_MAX`: for what it refers to."""
    parts = ((part, rule) for rule in components.rules for _, part in _parts(template, rule))
    for part, rule in islice(parts, COMPONENTS_MAX):
        spec, containers = _written_spec(part, rule)
        yield {**spec, "containers": containers}


def written_pod_specs(template: Mapping[str, Any], components: Components) -> Iterator[Mapping[str, Any]]:
    """Yield the pod specs that are in an object, at most `COMPONENTS_MAX`; not those of pods without one."""
    parts = ((part, rule) for rule in components.rules for _, part in _parts(template, rule))
    for part, rule in islice(parts, COMPONENTS_MAX):
        spec, _ = _written_spec(part, rule)
        if spec:
            yield spec


def is_gang(template: Mapping[str, Any], components: Components, wish: str = "") -> bool:
    """Return whether the pods of the object start together or not at all.

    `wish` is what its policy or annotation says: Always, Never, or "" for what its kind says.
    """
    if wish:
        return wish == "Always"
    return bool(components.rules) and components.is_gang and _holds(template, components.gang_if)


def _parts(template: Mapping[str, Any], rule: ComponentRule) -> Iterator[tuple[str, Mapping[str, Any]]]:
    at = dotpaths.get(template, rule.at)
    if not rule.is_each:
        entries: Iterator[tuple[str, Any]] = iter(((rule.name, at),))
    elif isinstance(at, Mapping):
        entries = ((str(key), entry) for key, entry in at.items())
    elif isinstance(at, list):
        entries = ((f"{rule.name}[{index}]", entry) for index, entry in enumerate(at))
    else:
        return
    for name, part in entries:
        if isinstance(part, Mapping) and _holds(part, rule.when):
            own = dotpaths.get(part, rule.name_path) if rule.name_path else None
            yield (own if isinstance(own, str) and own else name), part


def _pods(name: str, part: Mapping[str, Any], rule: ComponentRule) -> ComponentPods | None:
    pod = _pod(part, rule)
    if pod is None:
        return None
    count = _product(part, rule.replicas)
    if count is None:
        count = _product(part, rule.otherwise)
    count = 1 if count is None else count
    least = _product(part, rule.least) if rule.least else None
    return ComponentPods(name, count, count if least is None else min(least, count), pod)


def _product(part: Mapping[str, Any], factors: Sequence[Factor]) -> int | None:
    result = 1
    for factor in factors:
        number = _number(dotpaths.get(part, factor.path))
        number = factor.default if number is None else number
        if number is None:
            return None
        divisor = _number(dotpaths.get(part, factor.per)) if factor.per else None
        if divisor is not None and divisor > 0:
            number = -(-number // divisor)
        lowest = _number(dotpaths.get(part, factor.at_least)) if factor.at_least else None
        highest = _number(dotpaths.get(part, factor.at_most)) if factor.at_most else None
        number = number if lowest is None else max(number, lowest)
        number = number if highest is None else min(number, highest)
        result = min(result * max(0, number - factor.less), _PODS_MAX)
    return result


def _number(value: Any) -> int | None:
    """Return an integer, or a text of one, as maps of texts have them."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(_PODS_MAX)):
        return int(value)
    return value if type(value) is int else None


def _pod(part: Mapping[str, Any], rule: ComponentRule) -> Mapping[str, Any] | None:
    """Return the spec of a pod of the component, None if it starts none."""
    spec, found = _written_spec(part, rule)
    found += [{"resources": dotpaths.get(part, path)} for path in rule.resources]
    containers = list(map(_container, found))
    if rule.requests:
        containers[:1] = [{"resources": _with_requests(part, containers[0] if containers else {}, rule.requests)}]
    if not containers:
        return None
    return {
        "affinity": _mapping(spec.get("affinity")),
        "containers": containers,
        "initContainers": list(map(_container, _mappings(spec.get("initContainers")))),
        "nodeSelector": {str(key): str(value) for key, value in _mapping(spec.get("nodeSelector")).items()},
        "overhead": _mapping(spec.get("overhead")),
        "resourceClaims": _mappings(spec.get("resourceClaims")),
        "resources": _resources(spec),
        "tolerations": _mappings(spec.get("tolerations")),
    }


def _written_spec(part: Mapping[str, Any], rule: ComponentRule) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the pod spec of a component, {} without one, and all its containers."""
    specs = [spec for path in rule.pod_specs if isinstance(spec := dotpaths.get(part, path), Mapping)]
    spec = specs[0] if specs else {}
    found = _mappings(spec.get("containers"))
    for path in rule.containers:
        value = dotpaths.get(part, path)
        found += _mappings([value] if isinstance(value, Mapping) else value)
    return spec, found


def _container(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"resources": _resources(container), "restartPolicy": container.get("restartPolicy")}


def _resources(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a container or pod requests; the schema of a custom kind may admit anything in its place."""
    resources = _mapping(owner.get("resources"))
    return {part: _mapping(resources.get(part)) for part in ("limits", "requests")}


def _with_requests(
    part: Mapping[str, Any], container: Mapping[str, Any], requests: Sequence[Request]
) -> Mapping[str, Any]:
    """Return the resources of the first container with those that the object names elsewhere."""
    own = _resources(container)
    wanted = {**own["limits"], **own["requests"]}
    for request in requests:
        name = str(dotpaths.get(part, request.name_path) or "") if request.name_path else request.resource
        values = [value for path in request.paths if (value := dotpaths.get(part, path)) not in (None, "")]
        if not name or not (values or (request.default and name not in wanted)):
            continue
        amount = _amount(values[0] if values else request.default, is_java=request.is_java)
        if amount is not None:
            wanted[name] = str(amount + _overhead(part, request, amount))
    return {"requests": wanted}


def _overhead(part: Mapping[str, Any], request: Request, amount: Quantity) -> Quantity:
    own = dotpaths.get(part, request.overhead_path) if request.overhead_path else None
    explicit = None if own in (None, "") else _amount(own, is_java=request.is_java)
    if explicit is not None:
        return explicit
    share = Quantity(amount.nanos * request.overhead_percent // _PERCENT, amount.notation)
    least = _amount(request.overhead_least, is_java=False) if request.overhead_least else None
    return share if least is None else max(share, least)


def _amount(value: Any, *, is_java: bool) -> Quantity | None:
    text = str(value).strip()
    if is_java:
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
        suffix = text[len(digits) :].strip().lower()
        text = digits.strip() + _JAVA_SUFFIXES.get(suffix, "" if suffix == "b" else text[len(digits) :].strip())
    try:
        return parse(text)
    except ValueError:
        return None


def _holds(part: Mapping[str, Any], condition: FieldValue | None) -> bool:
    if condition is None:
        return True
    value = dotpaths.get(part, condition.path)
    return ("" if value is None else str(value)) in condition.values


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []
