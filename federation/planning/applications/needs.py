"""What an application needs in a cluster besides its own objects: classes, and kinds that it serves.

Pods name a PriorityClass and a RuntimeClass, claims a StorageClass, an Ingress its IngressClass. None of them follows a
workload, because they are the cluster's. Without them the API server refuses the pods, or nothing serves the object, so
they are compared before something moves. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from federation.api.components import to_path
from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, GroupKind, group_kind_of
from federation.planning.applications.graph import Application
from federation.planning.components import pod_specs_of
from federation.planning.followers.leaderplan import pod_path_of
from federation.planning.followers.references import Identity
from federation.planning.followers.ties import values_at

PRIORITY_CLASS = GroupKind("scheduling.k8s.io", "PriorityClass")
STORAGE_CLASS = GroupKind("storage.k8s.io", "StorageClass")
RUNTIME_CLASS = GroupKind("node.k8s.io", "RuntimeClass")
INGRESS_CLASS = GroupKind("networking.k8s.io", "IngressClass")
GATEWAY_CLASS = GroupKind("gateway.networking.k8s.io", "GatewayClass")
DEVICE_CLASS = GroupKind("resource.k8s.io", "DeviceClass")
NEEDED_KINDS = (PRIORITY_CLASS, STORAGE_CLASS, RUNTIME_CLASS, INGRESS_CLASS, GATEWAY_CLASS, DEVICE_CLASS)
_DEFAULT_CLASS_MARKS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OF_EVERY_CLUSTER = frozenset(("system-cluster-critical", "system-node-critical"))
_CLAIM, _INGRESS = PERSISTENT_VOLUME_CLAIMS.group_kind, GroupKind("networking.k8s.io", "Ingress")
_CLAIM_TEMPLATES = to_path("spec.volumeClaimTemplates[]")
_CLASS_OF_CLAIM = to_path("spec.storageClassName")
_POD_PATHS = (
    (to_path("priorityClassName"), PRIORITY_CLASS),
    (to_path("runtimeClassName"), RUNTIME_CLASS),
)
_PATHS: Mapping[GroupKind, tuple[tuple[dotpaths.Path, GroupKind], ...]] = {
    _INGRESS: ((to_path("spec.ingressClassName"), INGRESS_CLASS),),
    GroupKind("gateway.networking.k8s.io", "Gateway"): ((to_path("spec.gatewayClassName"), GATEWAY_CLASS),),
    **{
        GroupKind("resource.k8s.io", kind): (
            (to_path(f"{spec}.devices.requests[].deviceClassName"), DEVICE_CLASS),
            (to_path(f"{spec}.devices.requests[].exactly.deviceClassName"), DEVICE_CLASS),
            (to_path(f"{spec}.devices.requests[].firstAvailable[].deviceClassName"), DEVICE_CLASS),
        )
        for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
    },
}
_EPHEMERAL_CLAIMS = to_path("volumes[].ephemeral.volumeClaimTemplate")


class Need(NamedTuple):
    """A cluster-scoped object that a part of the application names; the name is "" for the default class."""

    group: str
    kind: str
    name: str
    by: Identity

    @property
    def group_kind(self) -> GroupKind:
        """The kind in all its versions."""
        return GroupKind(self.group, self.kind)

    @property
    def title(self) -> str:
        """`PriorityClass gold`, or `default StorageClass`."""
        return f"{self.kind} {self.name}" if self.name else f"default {self.kind}"


def needs_of(application: Application, type_: FederatedType | None) -> list[Need]:
    """Return what the parts of an application need, each once; `type_` is the federated type of the workload."""
    found = dict[tuple[str, str, str], Need]()
    every = [(application.identity, application.workload, type_)]
    every += [(part.identity, part.obj, None) for part in application.parts.values() if part.obj is not None]
    for identity, obj, kind in every:
        for needed, name in _named(obj, kind):
            if name not in _OF_EVERY_CLUSTER:
                found.setdefault((needed.group, needed.kind, name), Need(*needed, name, identity))
    return sorted(found.values())


def kinds_of(application: Application) -> dict[GroupKind, bool]:
    """Return the kinds that a cluster has to serve for the application, each with whether it fails without the kind."""
    identity = application.identity
    found = {GroupKind(identity.group, identity.kind): True}
    for part in application.parts.values():
        if part.obj is not None:
            kind = GroupKind(part.identity.group, part.identity.kind)
            found[kind] = found.get(kind, False) or part.relation.is_essential
    return found


def lacking(needs: Iterable[Need], has: Callable[[GroupKind], Iterable[Mapping[str, Any]] | None]) -> list[Need]:
    """Return the needs that a cluster does not meet; `has` returns its objects of a kind, None if it is not known."""
    missing = []
    for need in needs:
        objects = has(need.group_kind)
        if objects is not None and not any(_is_met(need, each) for each in objects):
            missing.append(need)
    return missing


def _is_met(need: Need, obj: Mapping[str, Any]) -> bool:
    metadata = obj["metadata"]
    if need.name:
        return bool(metadata["name"] == need.name)
    annotations = metadata.get("annotations") or {}
    return any(annotations.get(mark) == "true" for mark in _DEFAULT_CLASS_MARKS)


def _named(obj: Mapping[str, Any], type_: FederatedType | None) -> Iterator[tuple[GroupKind, str]]:
    path = pod_path_of(obj, type_)
    specs = [dotpaths.get(obj, path)] if path else []
    if not path and type_ is not None:
        specs += pod_specs_of(obj, type_.components)
    for spec in specs:
        for field, kind in _POD_PATHS:
            yield from ((kind, name) for name in values_at(spec, field) if isinstance(name, str) and name)
    claims = [obj] if group_kind_of(obj) == _CLAIM else [*values_at(obj, _CLAIM_TEMPLATES)]
    for spec in specs:
        claims += values_at(spec, _EPHEMERAL_CLAIMS)
    yield from ((STORAGE_CLASS, name) for claim in claims if (name := _class_of(claim)) is not None)
    for field, kind in _PATHS.get(group_kind_of(obj), ()):
        yield from ((kind, name) for name in values_at(obj, field) if isinstance(name, str) and name)


def _class_of(claim: Any) -> str | None:
    """Return the StorageClass of a claim, "" for the default one; None if it has its volume, or wants no class."""
    name = dotpaths.get(claim, _CLASS_OF_CLAIM)
    if name == "" or (name is None and dotpaths.get(claim, ("spec", "volumeName"))):
        return None
    return name if isinstance(name, str) else ""
