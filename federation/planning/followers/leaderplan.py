"""Plan the followers of one workload, and their clusters. Pure.

Objects that the template or the annotation `followers` names go wherever the workload goes. Objects that only an
override names go to the clusters of that override; KubeAdmiral omits these (docs/decisions/0014). The Secrets of a
service account or Ingress go where it goes. `index.py` keeps the plans of all workloads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.jsonpatch import parse_pointer
from federation.apimachinery.resources import GroupKind
from federation.planning.clusters.deviceclaims import DEVICE_GROUP, KINDS
from federation.planning.components import pod_specs_of
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.followerplan import is_following_disabled
from federation.planning.followers.references import (
    INGRESS,
    SERVICE_ACCOUNT,
    FollowersError,
    Identity,
    Reference,
    follower_references,
    listed_followers,
)
from federation.planning.followers.references import pod_references as references_of_pod
from federation.planning.followers.ties import may_be_taken_along
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.podspec import pod_spec_path
from federation.planning.rendering.memberobject import Renderer, RenderError

FindType = Callable[[str, str], FederatedType | None]
"""Returns the federated type of a group and kind."""
Find = Callable[[Identity], Mapping[str, Any] | None]
"""Returns the federated object of a source."""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_REFERRING = frozenset(
    ("imagePullSecrets", "volumes", "resourceClaims", "serviceAccountName", "serviceAccount", *_CONTAINERS)
)
_WITH_SECRETS = frozenset((("", SERVICE_ACCOUNT), ("networking.k8s.io", INGRESS)))
_NAMING_SECRETS = frozenset(("imagePullSecrets", "secrets", "spec"))
_REFERRING_OF_CONTAINER = ("env", "envFrom")
_POD_SPEC = ("spec", "template", "spec")
_FOLLOWER_KINDS = frozenset(
    (
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "PersistentVolumeClaim"),
        ("", "ServiceAccount"),
        ("gateway.networking.k8s.io", "Gateway"),
        *((DEVICE_GROUP, kind) for kind in KINDS.values()),
    )
)


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """The followers of a workload with their clusters; `problem` describes an invalid `followers` annotation."""

    followers: Mapping[Reference, frozenset[str]]
    problem: str = ""


NO_FOLLOWERS = LeaderPlan({})


def may_follow(group: str, kind: str, type_: FederatedType | None) -> bool:
    """Return True if objects of this kind may follow: what workloads refer to, and what refers to them (`ties.py`).

    Leader kinds never follow, so that no object follows itself through others.
    """
    if (group, kind) in _FOLLOWER_KINDS:
        return True
    if type_ is not None and is_leader_type(type_):
        return False
    return may_be_taken_along(GroupKind(group, kind), type_)


def is_leader_type(type_: FederatedType) -> bool:
    """Return True if objects of the type are known to have pods, and so may lead."""
    return is_leader({"apiVersion": type_.resource.api_version, "kind": type_.resource.kind}, type_)


def is_leader(template: Mapping[str, Any], type_: FederatedType | None) -> bool:
    """Return True if the object has pods, and so may lead; `type_` is its federated type, None without one."""
    return bool(pod_path_of(template, type_)) or (type_ is not None and bool(type_.components.rules))


def pod_path_of(template: Mapping[str, Any], type_: FederatedType | None) -> tuple[str, ...]:
    """Return the keys of the pod spec, () without one.

    A kind that we do not know has it where its type says, or else in `spec.template` if that has containers.
    """
    try:
        return pod_spec_path(template)
    except OverrideError:
        pass
    if type_ is not None and type_.paths.pod_template:
        return (*type_.paths.pod_template, "spec")
    containers = dotpaths.get(template, (*_POD_SPEC, "containers"))
    is_pod = isinstance(containers, list) and bool(containers) and isinstance(containers[0], Mapping)
    return _POD_SPEC if is_pod else ()


def identity_of(federated: Mapping[str, Any]) -> Identity:
    """Return the identity of the source of a federated object."""
    template = (federated.get("spec") or {}).get("template") or {}
    group = _group_of(template)
    metadata = template.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""  # templates may be written by hand
    return Identity(group, str(template.get("kind", "")), federated["metadata"].get("namespace", ""), str(name))


def _group_of(template: Mapping[str, Any]) -> str:
    return str(template.get("apiVersion", "")).rpartition("/")[0]


def is_follower_scheduling_enabled(federated: Mapping[str, Any]) -> bool:
    """Return True if followers of the workload are scheduled: its policy enables it, and the workload is scheduled.

    Reference: docs/reference/followers.md.
    """
    annotations = federated["metadata"].get("annotations") or {}
    return (
        annotations.get(names.ENABLE_FOLLOWER_SCHEDULING) == "true"
        and annotations.get(names.NO_SCHEDULING) != "true"
        and not is_dry_run(federated)
    )


def is_dry_run(federated: Mapping[str, Any]) -> bool:
    """Return True if the object has the annotation dry-run and is in no cluster."""
    annotations = federated["metadata"].get("annotations") or {}
    return annotations.get(names.DRY_RUN) == "true" and not (federated.get("status") or {}).get("clusters")


def plan_leader(
    federated: Mapping[str, Any], type_: FederatedType | None, find_type: FindType, find: Find
) -> LeaderPlan:
    """Return the followers of a federated object; `type_` is its federated type, None when it has none."""
    template = (federated.get("spec") or {}).get("template") or {}
    if not is_leader(template, type_) or not is_follower_scheduling_enabled(federated):
        return NO_FOLLOWERS
    listed, problem = _listed(federated, find_type)
    placement = effective_placement(federated)
    followers = dict.fromkeys(dependencies_of(template, type_) | listed, placement)
    if type_ is not None:
        for cluster, dependencies in _overridden_needs(federated, type_, placement):
            for reference in dependencies:
                followers[reference] = followers.get(reference, frozenset()) | {cluster}
    namespace = federated["metadata"].get("namespace", "")
    for follower in filter(has_secrets, list(followers)):
        found = find(Identity(follower.group, follower.kind, namespace, follower.name))
        for secret, clusters in secrets_of(found, find_type, followers[follower]).items():
            followers[secret] = followers.get(secret, frozenset()) | clusters
    return LeaderPlan(followers, problem)


def dependencies_of(workload: Mapping[str, Any], type_: FederatedType | None = None) -> set[Reference]:
    """Return the objects that the pods of a workload refer to; none when it has no pods."""
    if path := pod_path_of(workload, type_):
        return references_of_pod(dotpaths.get(workload, path))
    specs = pod_specs_of(workload, type_.components) if type_ is not None else ()
    return {reference for spec in specs for reference in references_of_pod(spec)}


def has_secrets(follower: Reference | Identity) -> bool:
    """Return True if objects of the follower's kind take Secrets along."""
    return (follower.group, follower.kind) in _WITH_SECRETS


def secrets_of(
    follower: Mapping[str, Any] | None, find_type: FindType, clusters: frozenset[str]
) -> dict[Reference, frozenset[str]]:
    """Return the Secrets that a ServiceAccount or an Ingress takes along to the clusters, each with its clusters.

    `follower` is its federated object. One that does not exist, or does not follow, takes none along.
    """
    if follower is None or is_following_disabled(follower):
        return {}
    template = follower["spec"]["template"]
    found = dict.fromkeys(follower_references(template), clusters)
    type_ = find_type(_group_of(template), template["kind"])
    if type_ is not None:
        for cluster, rendered in _overridden(follower, type_, clusters, _may_name_secrets):
            for secret in follower_references(rendered):
                found[secret] = found.get(secret, frozenset()) | {cluster}
    return found


def inputs_of_secrets(follower: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return the parts of a federated object that decide which Secrets it takes along."""
    if follower is None:
        return ()
    spec = follower["spec"]
    return follower_references(spec["template"]), spec.get("overrides"), is_following_disabled(follower)


def _listed(federated: Mapping[str, Any], find_type: FindType) -> tuple[set[Reference], str]:
    """Return the listed followers of kinds that may follow, and the error of the annotation."""
    try:
        listed = listed_followers(federated["metadata"].get("annotations") or {})
    except FollowersError as error:
        return set(), str(error)
    allowed = {ref for ref in listed if may_follow(ref.group, ref.kind, find_type(ref.group, ref.kind))}
    wrong = sorted({f"{ref.group}/{ref.kind}".lstrip("/") for ref in listed - allowed})
    return allowed, f"annotation {names.FOLLOWERS}: objects of kind {', '.join(wrong)} cannot follow" if wrong else ""


def _overridden_needs(
    federated: Mapping[str, Any], type_: FederatedType, placement: frozenset[str]
) -> Iterable[tuple[str, set[Reference]]]:
    """Yield the dependencies of the pods in each cluster whose overrides may introduce a reference."""
    pod_path = pod_path_of(federated["spec"]["template"], type_)
    may_refer = partial(_may_refer, pod_path=pod_path) if pod_path else bool  # components may be anywhere
    for cluster, rendered in _overridden(federated, type_, placement, may_refer):
        yield cluster, dependencies_of(rendered, type_)


def _overridden(
    federated: Mapping[str, Any], type_: FederatedType, placement: frozenset[str], is_relevant: Callable[[str], bool]
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the object of each cluster in which an override patches a relevant path."""
    clusters = {
        entry["cluster"]
        for controller in federated["spec"].get("overrides") or ()
        for entry in controller.get("clusters") or ()
        if any(is_relevant(str(patch.get("path") or "")) for patch in entry.get("patches") or ())
    }
    renderer = Renderer(federated, type_) if clusters else None
    for cluster in clusters & placement:
        assert renderer is not None
        try:
            yield cluster, renderer.render(cluster).object
        except RenderError:
            continue  # Sync reports it.


def _may_name_secrets(path: str) -> bool:
    return path.startswith("/") and parse_pointer(path)[0] in _NAMING_SECRETS


@lru_cache(maxsize=4096)
def _may_refer(path: str, pod_path: tuple[str, ...]) -> bool:
    """Return True if a patch at the path may introduce a reference; most set an image, a command or replicas."""
    if not path.startswith("/"):
        return False
    keys = parse_pointer(path)
    if len(keys) <= len(pod_path):
        return keys == pod_path[: len(keys)]
    if keys[: len(pod_path)] != pod_path:
        return False
    field, *inside = keys[len(pod_path) :]
    if field not in _REFERRING:
        return False
    return field not in _CONTAINERS or len(inside) < 2 or inside[1] in _REFERRING_OF_CONTAINER
