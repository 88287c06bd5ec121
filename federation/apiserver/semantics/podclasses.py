"""PriorityClasses, RuntimeClasses and default classes, as kube-apiserver's admission applies them to new objects. Pure.

Functions change the spec of a new object in place. They return why it is refused, "" if it is not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from federation.apimachinery.quantity import to_canonical
from federation.apimachinery.resources import Object

Fields = dict[str, Any]

PREEMPTS: Final = "PreemptLowerPriority"
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}
"""The PriorityClasses of any cluster: value and description by name."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """The part of a PriorityClass that matters to pods."""

    value: int
    preemption_policy: str
    is_default: bool


NO_CLASS: Final = PriorityClass(0, PREEMPTS, is_default=False)


def parse_priority_class(obj: Object) -> PriorityClass:
    """Return what a stored PriorityClass says."""
    return PriorityClass(
        int(obj.get("value") or 0), str(obj.get("preemptionPolicy") or PREEMPTS), bool(obj.get("globalDefault"))
    )


def system_class_problem(obj: Object) -> str:
    """Return why a PriorityClass whose name has the prefix of the system is none of its classes, "" if it is one."""
    name = str(obj["metadata"].get("name") or "")
    problem = f"{name} is not a known system priority class"
    if name in SYSTEM_PRIORITIES:
        value, _ = SYSTEM_PRIORITIES[name]
        if obj.get("value", 0) == value and not obj.get("globalDefault"):
            return ""
        problem = f"value of {name} PriorityClass must be {value}"
        if obj.get("value", 0) == value:
            problem = f"globalDefault of {name} PriorityClass must be false"
    return f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"


def default_priority(classes: Iterable[tuple[str, PriorityClass]]) -> tuple[str, PriorityClass]:
    """Return the class of pods that name none: the global default with the lowest value, or no class."""
    defaults = [(found.value, name, found) for name, found in classes if found.is_default]
    if not defaults:
        return "", NO_CLASS
    _, name, found = min(defaults, key=lambda each: each[:2])
    return name, found


def set_priority(spec: Fields, name: str, found: PriorityClass) -> str:
    """Fill in the priority of a new pod with this class."""
    given, policy = spec.get("priority"), spec.get("preemptionPolicy")
    computed = "priority admission controller computed"
    if given is not None and given != found.value:
        return (
            f"the integer value of priority ({given}) must not be provided in pod spec; {computed} {found.value} from"
            " the given PriorityClass name"
        )
    if policy is not None and policy != found.preemption_policy:
        return (
            f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; {computed}"
            f" {found.preemption_policy} from the given PriorityClass name"
        )
    if name:
        spec["priorityClassName"] = name
    spec["priority"], spec["preemptionPolicy"] = found.value, found.preemption_policy
    return ""


def keep_priority(spec: Fields, old: Mapping[str, Any]) -> None:
    """Keep the priority of a pod whose update leaves it out."""
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """The overhead and scheduling fields that a RuntimeClass adds to pods."""

    overhead: Mapping[str, Any] | None
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]


def parse_runtime_class(obj: Object) -> RuntimeClass:
    """Return what a stored RuntimeClass says."""
    scheduling = obj.get("scheduling") or {}
    return RuntimeClass(
        (obj.get("overhead") or {}).get("podFixed"),
        scheduling.get("nodeSelector") or {},
        tuple(scheduling.get("tolerations") or ()),
    )


def set_runtime(spec: Fields, found: RuntimeClass | None) -> str:
    """Fill in the overhead and the scheduling of a new pod; `found` is its RuntimeClass, None if it names none."""
    if found is None:
        return ""
    overhead = spec.get("overhead")
    if found.overhead is not None:
        if overhead is None:
            overhead = spec["overhead"] = dict(found.overhead)
        if _amounts(overhead) != _amounts(found.overhead):
            return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in found.node_selector.items():
        if selector.setdefault(key, value) != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value};"
                f" pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if selector:
        spec["nodeSelector"] = selector
    own = list(spec.get("tolerations") or ())
    spec["tolerations"] = [*own, *(dict(each) for each in found.tolerations if dict(each) not in own)]
    return ""


def overhead_problem(spec: Mapping[str, Any], found: RuntimeClass | None) -> str:
    """Return why the overhead of a new pod is refused, "" if it is that of its RuntimeClass."""
    if spec.get("overhead") is None or (found is not None and found.overhead is not None):
        return ""
    return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def _amounts(overhead: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_canonical(amount) for name, amount in overhead.items()}


@dataclass(frozen=True, slots=True)
class DefaultClass:
    """A StorageClass or an IngressClass that is the default, the newest first."""

    created: str
    name: str


def parse_default_class(obj: Object, annotations: Iterable[str]) -> DefaultClass | None:
    """Return the class if one of the annotations makes it the default."""
    metadata = obj["metadata"]
    own = metadata.get("annotations") or {}
    if not any(own.get(key) == "true" for key in annotations):
        return None
    return DefaultClass(str(metadata.get("creationTimestamp") or ""), metadata["name"])


def newest_default(classes: Iterable[tuple[str, DefaultClass]]) -> str | None:
    """Return the name of the newest default class, of equally old ones the first by name; None if there is none."""
    found = sorted((found for _, found in classes), key=lambda each: each.name)
    return max(found, key=lambda each: each.created).name if found else None
