"""How objects belong to a workload without being referred to by it: they select, target, scale, protect or expose it.

`TIES` is a table of paths by kind. A FederatedTypeConfig adds the paths of its own kind with the annotation
`names.APPLICATION_PATHS`. Manifests are arbitrary JSON here, so no shape is assumed. Pure. `applications/graph.py`
makes the graph of an application from it, and `leaderplan.py` lets objects of these kinds follow.

Decision: docs/decisions/0236-an-application-is-a-graph-of-paths.md
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson

from federation.api import names
from federation.api.components import to_path
from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS, GroupKind
from federation.apimachinery.selectors import (
    NOTHING,
    Selector,
    SelectorError,
    compile_label_map,
    compile_label_selector,
)

_ITEMS = "[]"
"""The end of a key whose value is a list."""


class Relation(StrEnum):
    """How an object belongs to a workload."""

    NEEDED = "is needed by"
    """The workload, or another part of the application, refers to it."""
    LISTED = "is listed by"
    """The annotation `followers` of the workload names it."""
    EXPOSES = "exposes"
    SCALES = "scales"
    PROTECTS = "protects"
    MONITORS = "monitors"
    BACKS_UP = "backs up"
    PROVIDES = "provides"
    GRANTS = "grants rights to"
    TARGETS = "targets"

    @property
    def is_essential(self) -> bool:
        """Whether the application does not start, or does not serve, without the object."""
        return self in (Relation.NEEDED, Relation.LISTED, Relation.EXPOSES)


class TieError(InvalidInput):
    """The annotation `application-paths` of a FederatedTypeConfig is malformed."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A path of a kind, and the objects that its value means.

    `kind` is that of objects that the value names, or the default where it names a kind itself. With `is_selector`
    the value is a label selector, or a map of labels, of objects of the kind.
    """

    relation: Relation
    path: dotpaths.Path
    kind: GroupKind
    is_selector: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of a kind by their labels. Pods stand for the template of the workload."""

    relation: Relation
    kind: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class Mention:
    """An object by name, in the namespace of the one that names it; group "" also stands for an unknown group."""

    relation: Relation
    group: str
    kind: str
    name: str


POD, SERVICE = GroupKind("", "Pod"), GroupKind("", "Service")
_SECRET, _CLAIM = SECRETS.group_kind, PERSISTENT_VOLUME_CLAIMS.group_kind
_ACCOUNT, _DEPLOYMENT = GroupKind("", "ServiceAccount"), GroupKind("apps", "Deployment")
_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
_GATEWAY_API = "gateway.networking.k8s.io"
_PLACED_OTHERWISE = frozenset(
    (
        GroupKind("discovery.k8s.io", "EndpointSlice"),
        GroupKind("apps.kruise.io", "WorkloadSpread"),
    )
)
"""Kinds that have controllers of their own, or are not placed at all."""


def _tie(relation: Relation, path: str, kind: GroupKind = SERVICE, *, is_selector: bool = False) -> Tie:
    return Tie(relation, to_path(path), kind, is_selector)


def _selects(relation: Relation, path: str, kind: GroupKind = POD) -> Tie:
    return _tie(relation, path, kind, is_selector=True)


TIES: Mapping[GroupKind, tuple[Tie, ...]] = {
    SERVICE: (_selects(Relation.EXPOSES, "spec.selector"),),
    GroupKind("discovery.k8s.io", "EndpointSlice"): (
        _tie(Relation.EXPOSES, "/metadata/labels/kubernetes.io~1service-name"),
    ),
    GroupKind("networking.k8s.io", "Ingress"): (
        _tie(Relation.EXPOSES, "spec.rules[].http.paths[].backend.service.name"),
        _tie(Relation.EXPOSES, "spec.defaultBackend.service.name"),
    ),
    **{GroupKind(_GATEWAY_API, kind): (_tie(Relation.EXPOSES, "spec.rules[].backendRefs[]"),) for kind in _ROUTES},
    GroupKind(_GATEWAY_API, "BackendTLSPolicy"): (_tie(Relation.EXPOSES, "spec.targetRefs[]"),),
    GroupKind("networking.istio.io", "VirtualService"): (
        _tie(Relation.EXPOSES, "spec.http[].route[].destination.host"),
        _tie(Relation.EXPOSES, "spec.tcp[].route[].destination.host"),
    ),
    GroupKind("networking.istio.io", "DestinationRule"): (_tie(Relation.EXPOSES, "spec.host"),),
    GroupKind("traefik.io", "IngressRoute"): (_tie(Relation.EXPOSES, "spec.routes[].services[]"),),
    GroupKind("multicluster.x-k8s.io", "ServiceExport"): (_tie(Relation.EXPOSES, "metadata.name"),),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): (_tie(Relation.SCALES, "spec.scaleTargetRef", _DEPLOYMENT),),
    GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler"): (_tie(Relation.SCALES, "spec.targetRef", _DEPLOYMENT),),
    GroupKind("keda.sh", "ScaledObject"): (_tie(Relation.SCALES, "spec.scaleTargetRef", _DEPLOYMENT),),
    GroupKind("policy", "PodDisruptionBudget"): (_selects(Relation.PROTECTS, "spec.selector"),),
    GroupKind("policy.kruise.io", "PodUnavailableBudget"): (
        _selects(Relation.PROTECTS, "spec.selector"),
        _tie(Relation.PROTECTS, "spec.targetRef", _DEPLOYMENT),
    ),
    GroupKind("networking.k8s.io", "NetworkPolicy"): (_selects(Relation.PROTECTS, "spec.podSelector"),),
    GroupKind("cilium.io", "CiliumNetworkPolicy"): (_selects(Relation.PROTECTS, "spec.endpointSelector"),),
    GroupKind("security.istio.io", "AuthorizationPolicy"): (_selects(Relation.PROTECTS, "spec.selector"),),
    GroupKind("monitoring.coreos.com", "ServiceMonitor"): (_selects(Relation.MONITORS, "spec.selector", SERVICE),),
    GroupKind("monitoring.coreos.com", "PodMonitor"): (_selects(Relation.MONITORS, "spec.selector"),),
    GroupKind("volsync.backube", "ReplicationSource"): (_tie(Relation.BACKS_UP, "spec.sourcePVC", _CLAIM),),
    GroupKind("snapshot.storage.k8s.io", "VolumeSnapshot"): (
        _tie(Relation.BACKS_UP, "spec.source.persistentVolumeClaimName", _CLAIM),
    ),
    GroupKind("cert-manager.io", "Certificate"): (_tie(Relation.PROVIDES, "spec.secretName", _SECRET),),
    GroupKind("external-secrets.io", "ExternalSecret"): (_tie(Relation.PROVIDES, "spec.target.name", _SECRET),),
    GroupKind("bitnami.com", "SealedSecret"): (_tie(Relation.PROVIDES, "metadata.name", _SECRET),),
    GroupKind("rbac.authorization.k8s.io", "RoleBinding"): (_tie(Relation.GRANTS, "subjects[]", _ACCOUNT),),
    GroupKind("apps.kruise.io", "WorkloadSpread"): (_tie(Relation.TARGETS, "spec.targetRef", _DEPLOYMENT),),
}
"""The paths by which objects of well-known kinds belong to a workload. `docs/reference/applications.md` lists them."""


def ties_of(kind: GroupKind, type_: FederatedType | None) -> tuple[Tie, ...]:
    """Return the ties of a kind; `type_` is its federated type, None without one. TieError for a wrong annotation."""
    own = _parsed(type_.application_paths) if type_ is not None else ()
    scales = type_.scale_target_ref_path if type_ is not None else ()
    known = TIES.get(kind, ())
    if scales and not known:
        known = (Tie(Relation.SCALES, scales, _DEPLOYMENT),)
    return (*known, *own)


def tied_kinds(types: Iterable[FederatedType]) -> list[GroupKind]:
    """Return the kinds whose objects can belong to a workload by a path; TieError for a wrong annotation."""
    own = (type_.resource.group_kind for type_ in types if ties_of(type_.resource.group_kind, type_))
    return list(dict.fromkeys((*TIES, *own)))


def may_be_taken_along(kind: GroupKind, type_: FederatedType | None) -> bool:
    """Return True if objects of the kind belong to workloads by a path, and may go where these go."""
    try:
        ties = ties_of(kind, type_)
    except TieError:
        return False
    # Rights do not follow: docs/decisions/0090.
    return kind not in _PLACED_OTHERWISE and any(tie.relation is not Relation.GRANTS for tie in ties)


def links_of(obj: Mapping[str, Any], ties: tuple[Tie, ...]) -> Iterator[Selection | Mention]:
    """Yield what an object selects or names by the ties of its kind."""
    for tie in ties:
        for value in values_at(obj, tie.path):
            if tie.is_selector:
                selector = _selector(value, is_map=tie.kind == POD and obj.get("kind") == SERVICE.kind)
                if not selector.is_nothing:
                    yield Selection(tie.relation, tie.kind.kind, selector)
            elif (named := _named(value, tie.kind)) is not None:
                yield Mention(tie.relation, *named)


def _named(value: Any, kind: GroupKind) -> tuple[str, str, str] | None:
    """Return group, kind and name of a reference: a name, or a mapping with `name` and perhaps a kind."""
    if isinstance(value, Mapping):
        name, found = value.get("name"), value.get("kind") or kind.kind
        group = str(value.get("apiVersion") or "").rpartition("/")[0] or value.get("apiGroup") or value.get("group")
        if group is None and found == kind.kind:
            group = kind.group
        return (str(group or ""), str(found), name) if isinstance(name, str) and name else None
    if not isinstance(value, str) or not value:
        return None
    # A host of a mesh is a Service's name or its DNS name.
    return kind.group, kind.kind, value.partition(".")[0] if kind == SERVICE else value


def _selector(value: Any, *, is_map: bool) -> Selector:
    """Return the selector of a field. An empty map of labels selects nothing, an empty label selector everything."""
    if not isinstance(value, Mapping) or (is_map and not value):
        return NOTHING
    is_labels = is_map or (bool(value) and not {"matchLabels", "matchExpressions"}.intersection(value))
    try:
        return compile_label_map(value) if is_labels else compile_label_selector(value)
    except (SelectorError, AttributeError, TypeError, KeyError):
        return NOTHING


def values_at(value: Any, path: dotpaths.Path) -> Iterator[Any]:
    """Yield the values at a path; a key that ends in [] stands for each item of a list."""
    if not path:
        if value is not None:
            yield value
        return
    if not isinstance(value, Mapping):
        return
    key, rest = path[0], path[1:]
    if not key.endswith(_ITEMS):
        yield from values_at(value.get(key), rest)
        return
    items = value.get(key.removesuffix(_ITEMS))
    for item in items if isinstance(items, list) else ():
        yield from values_at(item, rest)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Tie, ...]:
    """Return the ties in an annotation of a FederatedTypeConfig; TieError names the entry that is wrong."""
    if not text:
        return ()
    remedy = 'write a list such as [{"path": "spec.targetRef", "relation": "scales"}]'
    try:
        entries = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise TieError(f"annotation {names.APPLICATION_PATHS}: not JSON, {error}; {remedy}") from error
    if not isinstance(entries, list):
        raise TieError(f"annotation {names.APPLICATION_PATHS}: {remedy}")
    return tuple(_entry(entry, f"annotation {names.APPLICATION_PATHS}: item {at}") for at, entry in enumerate(entries))


def _entry(entry: Any, where: str) -> Tie:
    given = entry if isinstance(entry, Mapping) else {}
    path, selects, kind = given.get("path"), given.get("selects"), given.get("kind", "Deployment.apps")
    if not isinstance(path, str) or not to_path(path):
        raise TieError(f"{where}: path: give the dot path of a field")
    try:
        relation = Relation(given.get("relation", Relation.TARGETS))
    except ValueError as error:
        known = ", ".join(each for each in Relation if each not in (Relation.NEEDED, Relation.LISTED))
        raise TieError(f"{where}: relation: {given['relation']!r} is none of {known}") from error
    if selects is not None:
        if selects not in (POD.kind, SERVICE.kind):
            raise TieError(f"{where}: selects: {selects!r} is neither Pod nor Service")
        return Tie(relation, to_path(path), GroupKind("", selects), is_selector=True)
    if not isinstance(kind, str) or not kind:
        raise TieError(f"{where}: kind: give a kind such as Service or Deployment.apps")
    name, _, group = kind.partition(".")
    return Tie(relation, to_path(path), GroupKind(group, name))
