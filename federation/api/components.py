"""The components of a kind: where its objects say which pods they start, and how many of each.

A `ComponentRule` is one entry of `spec.components` of a FederatedTypeConfig in parsed form. It is data: paths of
fields, never code. `shippedcomponents.py` has the entries that ship; `planning/components.py` applies them.

Reference: docs/reference/kinds.md. Decision: docs/decisions/0108-components-are-paths.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import dotpaths


@dataclass(frozen=True, slots=True)
class Factor:
    """A number in an object, times which others are taken: the one at `path`, or `default` where it is missing.

    None as the default makes the product undefined. The number is divided by the one at `per`, rounded up, brought
    between those at `at_least` and `at_most`, and reduced by `less`.
    """

    path: dotpaths.Path
    default: int | None = None
    less: int = 0
    per: dotpaths.Path = ()
    at_least: dotpaths.Path = ()
    at_most: dotpaths.Path = ()


@dataclass(frozen=True, slots=True)
class FieldValue:
    """Holds if the field at `path` has one of the values; a missing field has the value ""."""

    path: dotpaths.Path
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A resource that the first container of each pod requests.

    The first of `paths` with a value replaces what the container says, `default` holds where neither says anything.
    `name_path` names the resource if the object does. With `is_java`, "512m" are mebibytes. An overhead is added: the
    amount at `overhead_path`, or else a percentage, and at least `overhead_least`.
    """

    resource: str = ""
    name_path: dotpaths.Path = ()
    paths: tuple[dotpaths.Path, ...] = ()
    default: str = ""
    is_java: bool = False
    overhead_path: dotpaths.Path = ()
    overhead_percent: int = 0
    overhead_least: str = ""


@dataclass(frozen=True, slots=True)
class ComponentRule:
    """Where the objects of a kind describe one component. All paths but `at` are relative to what is at `at`.

    With `is_each`, `at` is a list or a map, and each of its entries is a component of its own, named by `name_path`.
    An object without `at` does not have the component.
    """

    name: str
    at: dotpaths.Path = ()
    is_each: bool = False
    name_path: dotpaths.Path = ()
    when: FieldValue | None = None
    replicas: tuple[Factor, ...] = ()
    otherwise: tuple[Factor, ...] = ()
    """The replicas where a factor of `replicas` without a default is missing."""
    least: tuple[Factor, ...] = ()
    """The replicas that must run at the same time for the object to work; () for all."""
    pod_specs: tuple[dotpaths.Path, ...] = ()
    """Paths of the pod spec; the first that exists counts. One path, (), is the component itself."""
    containers: tuple[dotpaths.Path, ...] = ()
    """Paths of containers, or lists of them, that the pods have besides those of the pod spec."""
    resources: tuple[dotpaths.Path, ...] = ()
    """Paths of `requests` and `limits` of such a container."""
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a kind, and whether an object of it is a gang unless its policy says otherwise.

    `gang_if` limits that to objects for which it holds. `is_sequence`: the components run one after the other, as the
    steps of a workflow do, so that they never need their resources together.
    """

    rules: tuple[ComponentRule, ...] = ()
    is_gang: bool = True
    gang_if: FieldValue | None = None
    is_sequence: bool = False


NO_COMPONENTS = Components((), is_gang=False)


def parse_components(entries: Sequence[Mapping[str, Any]], gang: Mapping[str, Any] | None = None) -> Components:
    """Return the components of `spec.components` and `spec.gang`; ValueError naming a field that cannot work."""
    gang = gang or {}
    return Components(
        tuple(_rule(entry, f"spec.components[{index}]") for index, entry in enumerate(entries)),
        is_gang=gang.get("start", "Together") == "Together",
        gang_if=_field_value(gang.get("when")),
        is_sequence=gang.get("start") == "InSequence",
    )


def _rule(entry: Mapping[str, Any], field: str) -> ComponentRule:
    if not (entry.get("podSpecs") or entry.get("containers") or entry.get("resources") or entry.get("requests")):
        raise ValueError(f"{field}: Required value: podSpecs, containers, resources or requests say what a pod needs")
    return ComponentRule(
        name=str(entry["name"]),
        at=to_path(entry.get("at")),
        is_each=bool(entry.get("each")),
        name_path=to_path(entry.get("namePath")),
        when=_field_value(entry.get("when")),
        replicas=_factors(entry.get("replicas")),
        otherwise=_factors(entry.get("replicasOtherwise")),
        least=_factors(entry.get("minReplicas")),
        pod_specs=_paths(entry.get("podSpecs")),
        containers=_paths(entry.get("containers")),
        resources=_paths(entry.get("resources")),
        requests=tuple(_request(request) for request in entry.get("requests") or ()),
    )


def to_path(text: str | None) -> dotpaths.Path:
    """Return the keys of a dot path, or of a JSON pointer for keys that contain dots; "" and "." for none."""
    if text and text.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))
    return dotpaths.split(text or "")


def _paths(texts: Sequence[str] | None) -> tuple[dotpaths.Path, ...]:
    return tuple(map(to_path, texts or ()))


def _factors(entries: Sequence[Mapping[str, Any]] | None) -> tuple[Factor, ...]:
    return tuple(
        Factor(
            to_path(entry["path"]),
            entry.get("default"),
            int(entry.get("less") or 0),
            to_path(entry.get("per")),
            to_path(entry.get("atLeast")),
            to_path(entry.get("atMost")),
        )
        for entry in entries or ()
    )


def _field_value(entry: Mapping[str, Any] | None) -> FieldValue | None:
    return None if entry is None else FieldValue(to_path(entry["path"]), frozenset(map(str, entry["values"])))


def _request(entry: Mapping[str, Any]) -> Request:
    overhead = entry.get("overhead") or {}
    return Request(
        resource=str(entry.get("resource") or ""),
        name_path=to_path(entry.get("resourcePath")),
        paths=_paths(entry.get("paths")),
        default=str(entry.get("default") or ""),
        is_java=entry.get("format") == "Java",
        overhead_path=to_path(overhead.get("path")),
        overhead_percent=int(overhead.get("percent") or 0),
        overhead_least=str(overhead.get("atLeast") or ""),
    )
