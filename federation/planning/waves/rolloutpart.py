"""The part of an object that a rollout in waves brings to its clusters. Pure.

Of a workload that replaces its pods one by one it is the pod template. Of a custom resource it is everything but
metadata, status and replicas, so that scaling, labels and annotations do not wait. `planning/rendering` puts the
revision of this part into member objects, `planning/steps` holds it, and `features/waves` brings and returns it.

Reference: docs/reference/rollout.md.

Decision: docs/decisions/0194-waves-of-custom-resources.md
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final

from federation.api.federatedtype import FederatedType
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery import dotpaths
from federation.apimachinery.jsonpatch import to_pointer
from federation.apimachinery.resources import Object
from federation.planning.aggregation.custom import is_custom
from federation.planning.federatedobject.finished import runs_to_completion

Part = Mapping[str, Any]
"""The pod template, or the fields of a custom resource."""
_WITH_PODS: Final = frozenset(
    [("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet")]
    + [(KRUISE_GROUP, kind) for kind in ("CloneSet", "StatefulSet")]
)
_APART: Final = frozenset(("apiVersion", "kind", "metadata", "status"))


def replaces_pods(template: Mapping[str, Any]) -> bool:
    """Return whether objects of the template's kind replace their pods one by one: waves bring their pod template."""
    return _part_of(*_kind_of(template)) is _Brought.POD_TEMPLATE


def has_waves(template: Mapping[str, Any]) -> bool:
    """Return whether waves apply to the kind of a template.

    What runs to completion never gets another content, and other kinds of Kubernetes have no health to wait for.
    """
    return _part_of(*_kind_of(template)) is not None


def is_resource(template: Mapping[str, Any]) -> bool:
    """Return whether waves bring the content of objects of the template's kind, and not their pod template."""
    return _part_of(*_kind_of(template)) is _Brought.RESOURCE


def kinds_with_waves() -> str:
    """Return the kinds that waves apply to, for messages."""
    kinds = ", ".join(sorted({kind for _, kind in _WITH_PODS}))
    return f"{kinds} and custom resources that do not run to completion"


def _kind_of(template: Mapping[str, Any]) -> tuple[str, str]:
    return str(template.get("apiVersion") or ""), str(template.get("kind") or "")


class _Brought(Enum):
    """What waves bring to members."""

    POD_TEMPLATE = auto()
    RESOURCE = auto()


@lru_cache(maxsize=512)
def _part_of(api_version: str, kind: str) -> _Brought | None:
    """Return what waves bring of a kind, None for kinds without waves; it is asked at every event of a member."""
    group = api_version.rpartition("/")[0]
    if group and is_custom(group) and group != KRUISE_GROUP and not runs_to_completion(group, kind):
        return _Brought.RESOURCE
    return _Brought.POD_TEMPLATE if (group, kind) in _WITH_PODS else None


@dataclass(frozen=True, slots=True)
class RolloutPart:
    """What a rollout brings of the objects of one kind; `replicas` is the path of those of a custom resource."""

    is_pod_template: bool
    replicas: dotpaths.Path = ()

    def of(self, obj: Mapping[str, Any]) -> Part:
        """Return the part of an object; it shares values with the object."""
        if self.is_pod_template:
            spec = obj.get("spec")
            return (spec.get("template") if isinstance(spec, Mapping) else None) or {}
        return _without({key: value for key, value in obj.items() if key not in _APART}, self.replicas)

    def put(self, obj: Mapping[str, Any], part: Part) -> Object:
        """Return the object with another part."""
        if self.is_pod_template:
            return {**obj, "spec": {**obj["spec"], "template": part}}
        kept = {key: value for key, value in obj.items() if key in _APART}
        replicas = dotpaths.get(obj, self.replicas) if self.replicas else None
        return {**kept, **(part if replicas is None else _with(part, self.replicas, replicas))}

    def patches(self, obj: Mapping[str, Any], part: Part) -> list[Object]:
        """Return the patches that turn an object into `put(obj, part)`, whatever its replicas are then."""
        if self.is_pod_template:
            return [{"op": "replace", "path": "/spec/template", "value": part}]
        fields = {key: value for key, value in obj.items() if key not in _APART}
        return list(_difference(fields, part, self.replicas, ""))


POD_TEMPLATE: Final = RolloutPart(is_pod_template=True)


def rollout_part(type_: FederatedType) -> RolloutPart | None:
    """Return what a rollout brings of the objects of a type, None for kinds without waves."""
    resource = type_.resource
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    if not has_waves(kind):
        return None
    return (
        POD_TEMPLATE if replaces_pods(kind) else RolloutPart(is_pod_template=False, replicas=type_.paths.replicas_spec)
    )


def _without(value: Mapping[str, Any], path: dotpaths.Path) -> Object:
    """Return the mapping without the value at a path, and without mappings that are empty then."""
    if not path or path[0] not in value:
        return dict(value)
    rest = {key: each for key, each in value.items() if key != path[0]}
    inner = value[path[0]]
    if len(path) > 1 and not isinstance(inner, Mapping):
        return {**rest, path[0]: inner}
    if len(path) > 1 and (left := _without(inner, path[1:])):
        return {**rest, path[0]: left}
    return rest


def _with(value: Mapping[str, Any], path: dotpaths.Path, replicas: Any) -> Object:
    inner = value.get(path[0])
    if len(path) == 1:
        return {**value, path[0]: replicas}
    return {**value, path[0]: _with(inner if isinstance(inner, Mapping) else {}, path[1:], replicas)}


def _difference(
    before: Mapping[str, Any], after: Mapping[str, Any], path: dotpaths.Path, place: str
) -> Iterator[Object]:
    """Yield the patches of the fields that differ; the replicas stay, and nothing that holds them is replaced."""
    for key in sorted(before.keys() | after.keys()):
        field = place + to_pointer((key,))
        held, wanted = before.get(key), after.get(key, {})
        if path == (key,):
            continue
        if path[:1] == (key,) and isinstance(held, Mapping) and isinstance(wanted, Mapping):
            yield from _difference(held, wanted, path[1:], field)
        elif key not in after:
            yield {"op": "remove", "path": field}
        elif key not in before or held != wanted:
            yield {"op": "replace", "path": field, "value": wanted}
