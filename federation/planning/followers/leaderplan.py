"""Plan the followers of one workload, and their clusters. Pure.

Objects that the template or the annotation `followers` names go wherever the workload goes. Objects that only an
override names go to the clusters of that override; KubeAdmiral omits these (docs/decisions/0014). `index.py` keeps the
plans of all workloads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.jsonpatch import parse_pointer
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.references import FollowersError, Identity, Reference, listed_followers
from federation.planning.followers.references import pod_references as references_of_pod
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.podspec import pod_spec_path
from federation.planning.rendering.memberobject import Renderer, RenderError

FindType = Callable[[str, str], FederatedType | None]
"""Returns the federated type of a group and kind."""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_REFERRING = frozenset(("imagePullSecrets", "volumes", "serviceAccountName", "serviceAccount", *_CONTAINERS))
_REFERRING_OF_CONTAINER = ("env", "envFrom")
_FOLLOWER_KINDS = frozenset(
    (
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "PersistentVolumeClaim"),
        ("", "ServiceAccount"),
        ("", "Service"),
        ("networking.k8s.io", "Ingress"),
    )
)


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """The followers of a workload with their clusters; `problem` describes an invalid `followers` annotation."""

    followers: Mapping[Reference, frozenset[str]]
    problem: str = ""


NO_FOLLOWERS = LeaderPlan({})


def may_follow(group: str, kind: str, type_: FederatedType | None) -> bool:
    """Return True if objects of this kind may follow: dependencies of workloads, and types that scale them.

    Leader kinds never follow, so that no object follows itself through others.
    """
    if (group, kind) in _FOLLOWER_KINDS:
        return True
    return type_ is not None and bool(type_.scale_target_ref_path) and not is_leader_type(type_)


def is_leader_type(type_: FederatedType) -> bool:
    """Return True if objects of the type have pods, and so may lead."""
    return is_leader_kind({"apiVersion": type_.resource.api_version, "kind": type_.resource.kind})


def is_leader_kind(template: Mapping[str, Any]) -> bool:
    """Return True if objects of the template's kind have pods, and so may lead."""
    try:
        return bool(pod_spec_path(template))
    except OverrideError:
        return False


def identity_of(federated: Mapping[str, Any]) -> Identity:
    """Return the identity of the source of a federated object."""
    template = (federated.get("spec") or {}).get("template") or {}
    group = str(template.get("apiVersion", "")).rpartition("/")[0]
    metadata = template.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""  # templates may be written by hand
    return Identity(group, str(template.get("kind", "")), federated["metadata"].get("namespace", ""), str(name))


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


def plan_leader(federated: Mapping[str, Any], type_: FederatedType | None, find_type: FindType) -> LeaderPlan:
    """Return the followers of a federated object; `type_` is its federated type, None when it has none."""
    template = (federated.get("spec") or {}).get("template") or {}
    if not is_leader_kind(template) or not is_follower_scheduling_enabled(federated):
        return NO_FOLLOWERS
    listed, problem = _listed(federated, find_type)
    placement = effective_placement(federated)
    followers = dict.fromkeys(dependencies_of(template) | listed, placement)
    if type_ is None:
        return LeaderPlan(followers, problem)
    for cluster, dependencies in _overridden_needs(federated, type_, placement):
        for reference in dependencies:
            if cluster not in (present := followers.get(reference, frozenset())):
                followers[reference] = present | {cluster}
    return LeaderPlan(followers, problem)


def dependencies_of(workload: Mapping[str, Any]) -> set[Reference]:
    """Return the objects that the pods of a workload refer to; none when its kind has no pods."""
    try:
        return references_of_pod(dotpaths.get(workload, pod_spec_path(workload)))
    except OverrideError:
        return set()


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
    spec = federated["spec"]
    pod_path = pod_spec_path(spec["template"])
    clusters = {
        entry["cluster"]
        for controller in spec.get("overrides") or ()
        for entry in controller.get("clusters") or ()
        if any(_may_refer(str(patch.get("path") or ""), pod_path) for patch in entry.get("patches") or ())
    }
    renderer = Renderer(federated, type_) if clusters else None
    for cluster in clusters & placement:
        assert renderer is not None
        try:
            yield cluster, dependencies_of(renderer.render(cluster).object)
        except RenderError:
            continue  # Sync reports it.


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
