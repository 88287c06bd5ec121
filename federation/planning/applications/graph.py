"""The graph of an application: a workload and the objects of its namespace that belong to it. Pure.

What the workload refers to belongs to it (`followers/references.py`), and what selects, targets, scales, protects or
exposes a part of it (`followers/ties.py`). A part that is tied to the application brings along what it refers to, but
not what else it is tied to: an Ingress for two Services is a part of both applications, and the second Service is not a
part of the first. Import, migrate and `fedctl app` read the same graph.

Decision: docs/decisions/0236-an-application-is-a-graph-of-paths.md
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import GroupKind, group_kind_of
from federation.planning.federatedobject.imported import is_made_by_cluster
from federation.planning.followers.leaderplan import dependencies_of, is_leader, pod_path_of
from federation.planning.followers.references import (
    FollowersError,
    Identity,
    follower_references,
    listed_followers,
)
from federation.planning.followers.ties import POD, Mention, Relation, Selection, links_of, ties_of

FindType = Callable[[str, str], FederatedType | None]
_GATEWAY_API = "gateway.networking.k8s.io"


@dataclass(frozen=True, slots=True)
class Part:
    """An object that belongs to an application, and how: by its relation to another part, or to the workload."""

    identity: Identity
    relation: Relation
    to: Identity
    obj: Mapping[str, Any] | None = None
    """The object, None if only a reference to it is known."""


@dataclass(frozen=True, slots=True)
class Application:
    """A workload and its parts, in the order in which they were found."""

    workload: Mapping[str, Any]
    identity: Identity
    parts: Mapping[Identity, Part] = field(default_factory=dict)
    bare_pods: Sequence[str] = ()
    """Names of Pods that no controller makes, and that a part of the application selects."""


@dataclass(frozen=True, slots=True)
class _Linked:
    identity: Identity
    obj: Mapping[str, Any]
    links: Sequence[Selection | Mention]


def identity_of_object(obj: Mapping[str, Any]) -> Identity:
    """Return the identity of an object as it is in a cluster or on the host."""
    kind, metadata = group_kind_of(obj), obj["metadata"]
    return Identity(kind.group, kind.kind, str(metadata.get("namespace") or ""), str(metadata["name"]))


def applications(objects: Iterable[Mapping[str, Any]], find_type: FindType) -> list[Application]:
    """Return the application of each workload among the objects of one namespace; TieError for a wrong path.

    What controllers make, as ReplicaSets and their pods, is neither a workload nor a part.
    """
    workloads, linked, by_identity, pods = [], list[_Linked](), dict[Identity, Mapping[str, Any]](), []
    for obj in objects:
        if is_made_by_cluster(obj) or controller_of(obj) is not None:
            continue
        identity = identity_of_object(obj)
        type_ = find_type(identity.group, identity.kind)
        by_identity[identity] = obj
        if GroupKind(identity.group, identity.kind) == POD:
            pods.append(obj)
        elif is_leader(obj, type_):
            workloads.append(obj)
        elif links := tuple(links_of(obj, ties_of(GroupKind(identity.group, identity.kind), type_))):
            linked.append(_Linked(identity, obj, links))
    return [_application(workload, linked, by_identity, pods, find_type) for workload in workloads]


def owners_of(found: Iterable[Application]) -> dict[Identity, list[Identity]]:
    """Return the workloads of each part: more than one where applications share it."""
    owners: dict[Identity, list[Identity]] = {}
    for application in found:
        for identity in application.parts:
            owners.setdefault(identity, []).append(application.identity)
    return owners


def shared_parts(
    application: Application, owners: Mapping[Identity, Sequence[Identity]]
) -> dict[Identity, list[Identity]]:
    """Return the parts that other applications have, too, with their workloads."""
    found = {}
    for identity in application.parts:
        if others := [each for each in owners.get(identity, ()) if each != application.identity]:
            found[identity] = others
    return found


def _application(
    workload: Mapping[str, Any],
    linked: Sequence[_Linked],
    objects: Mapping[Identity, Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
    find_type: FindType,
) -> Application:
    identity = identity_of_object(workload)
    type_ = find_type(identity.group, identity.kind)
    labels = _pod_labels(workload, type_)
    parts: dict[Identity, Part] = {}

    def refer(found: Iterable[tuple[Relation, Identity]], to: Identity) -> None:
        for relation, each in sorted(found):
            if each != identity and each not in parts:
                parts[each] = Part(each, relation, to, objects.get(each))

    refer(((Relation.NEEDED, _in(identity, ref)) for ref in dependencies_of(workload, type_)), identity)
    examined: set[Identity] = set()

    def grow() -> None:
        """Add what is tied to the parts, and what they refer to, until nothing more is found."""
        while True:
            for each in [part for part in parts.values() if part.identity not in examined and part.obj is not None]:
                examined.add(each.identity)
                refer(((Relation.NEEDED, found) for found in _references(each)), each.identity)
            joining = [
                (each, tie)
                for each in linked
                if each.identity not in parts and (tie := _tied(each, identity, labels, parts)) is not None
            ]
            if not joining:
                return
            for joined, (relation, to) in joining:
                parts[joined.identity] = Part(joined.identity, relation, to, joined.obj)

    grow()
    # Last, because commands list what they find: the relation that put it there says more.
    refer(((Relation.LISTED, each) for each in _listed(workload, identity)), identity)
    grow()
    bare = sorted(str(pod["metadata"]["name"]) for pod in pods if _is_selected(pod, linked, parts))
    return Application(workload, identity, parts, bare)


def _tied(
    candidate: _Linked, workload: Identity, labels: Mapping[str, str], parts: Mapping[Identity, Part]
) -> tuple[Relation, Identity] | None:
    """Return how the object is tied to the application, and to which part of it; None if it is not."""
    for link in candidate.links:
        if isinstance(link, Mention):
            for identity in (workload, *parts):
                if (identity.kind, identity.name) == (link.kind, link.name) and link.group in ("", identity.group):
                    return link.relation, identity
        elif link.kind == POD.kind:
            if link.selector.matches(labels):
                return link.relation, workload
        else:
            for identity, part in parts.items():
                labels_of_part = part.obj["metadata"].get("labels") if part.obj is not None else None
                if identity.kind == link.kind and part.obj is not None and link.selector.matches(labels_of_part):
                    return link.relation, identity
    return None


def _is_selected(pod: Mapping[str, Any], linked: Iterable[_Linked], parts: Mapping[Identity, Part]) -> bool:
    """Return True if a part of the application selects the pod by something that is not every pod."""
    return any(
        isinstance(link, Selection)
        and link.kind == POD.kind
        and bool(link.selector.requirements)
        and link.selector.matches(pod["metadata"].get("labels") or {})
        for each in linked
        if each.identity in parts
        for link in each.links
    )


def _pod_labels(workload: Mapping[str, Any], type_: FederatedType | None) -> Mapping[str, str]:
    """Return the labels of the workload's pods, empty if they are not in the object."""
    path = pod_path_of(workload, type_)
    labels = dotpaths.get(workload, (*path[:-1], "metadata", "labels")) if path else None
    return labels if isinstance(labels, Mapping) else {}


def _in(leader: Identity, reference: Any) -> Identity:
    return Identity(reference.group, reference.kind, leader.namespace, reference.name)


def _listed(workload: Mapping[str, Any], identity: Identity) -> Iterator[Identity]:
    try:
        listed = listed_followers(workload["metadata"].get("annotations") or {})
    except FollowersError:
        return  # an event of the workload reports it
    for reference in listed:
        yield _in(identity, reference)


def _references(part: Part) -> Iterator[Identity]:
    """Yield the objects in the namespace that a part refers to."""
    assert part.obj is not None
    for reference in follower_references(part.obj):
        yield _in(part.identity, reference)
    if part.identity.group == _GATEWAY_API:
        parents = dotpaths.get(part.obj, ("spec", "parentRefs"))
        for parent in parents if isinstance(parents, list) else ():
            if isinstance(parent, Mapping) and parent.get("namespace") in (None, part.identity.namespace):
                kind, name = parent.get("kind") or "Gateway", parent.get("name")
                if isinstance(name, str) and name:
                    yield Identity(_GATEWAY_API, str(kind), part.identity.namespace, name)
