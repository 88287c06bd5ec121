"""What one workload takes along, and to which clusters.

What its template refers to, and what its annotation `followers` lists, goes wherever the workload goes. What only an
override refers to goes to the clusters of that override, which KubeAdmiral leaves behind (docs/decisions/0014). Pure;
`index.py` keeps the result for all workloads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.api import paths as dotpaths
from federation.api.federatedtype import FederatedType
from federation.planning.followers.references import FollowersError, Identity, Reference, listed_followers
from federation.planning.followers.references import pod_references as references_of_pod
from federation.planning.memberobject import Renderer, RenderError
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.jsonpatch import parse_pointer
from federation.planning.overrides.podspec import pod_spec_path
from federation.planning.placements import effective_placement

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
class Lead:
    """Whom a workload takes along: clusters by follower. `problem` says what of it could not be understood."""

    followers: Mapping[Reference, frozenset[str]]
    problem: str = ""


NOBODY = Lead({})


def may_follow(group: str, kind: str, type_: FederatedType | None) -> bool:
    """Say whether objects of this kind may follow: what workloads need, and what scales them, which its type says.

    What leads never follows, whatever its type says, so that nobody follows himself by way of others.
    """
    if (group, kind) in _FOLLOWER_KINDS:
        return True
    return type_ is not None and bool(type_.scale_target_ref_path) and not leads(type_)


def leads(type_: FederatedType) -> bool:
    """Say whether objects of the type have pods, and so may lead."""
    return is_leader_kind({"apiVersion": type_.resource.api_version, "kind": type_.resource.kind})


def is_leader_kind(template: Mapping[str, Any]) -> bool:
    """Say whether objects of the template's kind have pods, and so may lead."""
    try:
        return bool(pod_spec_path(template))
    except OverrideError:
        return False


def identity_of(fed_object: Mapping[str, Any]) -> Identity:
    """Return whom a federated object stands for."""
    template = (fed_object.get("spec") or {}).get("template") or {}
    group = str(template.get("apiVersion", "")).rpartition("/")[0]
    metadata = template.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""  # written by hand it may be anything
    return Identity(group, str(template.get("kind", "")), fed_object["metadata"].get("namespace", ""), str(name))


def is_leading(fed_object: Mapping[str, Any]) -> bool:
    """Say whether a workload takes followers along: its policy wants it and it is scheduled for real (spec §9)."""
    annotations = fed_object["metadata"].get("annotations") or {}
    return (
        annotations.get(names.ENABLE_FOLLOWER_SCHEDULING) == "true"
        and annotations.get(names.NO_SCHEDULING) != "true"
        and not is_dry_run(fed_object)
    )


def is_dry_run(fed_object: Mapping[str, Any]) -> bool:
    """Say whether the object is only computed: annotation dry-run, and no cluster holds it yet."""
    annotations = fed_object["metadata"].get("annotations") or {}
    return annotations.get(names.DRY_RUN) == "true" and not (fed_object.get("status") or {}).get("clusters")


def lead_of(fed_object: Mapping[str, Any], type_: FederatedType | None, find_type: FindType) -> Lead:
    """Return whom a federated object takes along. `type_` is its federated type, None when it has none (any more)."""
    template = (fed_object.get("spec") or {}).get("template") or {}
    if not is_leader_kind(template) or not is_leading(fed_object):
        return NOBODY
    listed, problem = _listed(fed_object, find_type)
    everywhere = effective_placement(fed_object)
    followers = dict.fromkeys(needs_of(template) | listed, everywhere)
    if type_ is None:
        return Lead(followers, problem)
    for cluster, needs in _overridden_needs(fed_object, type_, everywhere):
        for reference in needs:
            if cluster not in (present := followers.get(reference, frozenset())):
                followers[reference] = present | {cluster}
    return Lead(followers, problem)


def needs_of(workload: Mapping[str, Any]) -> set[Reference]:
    """Return what the pods of a workload refer to; nothing when its kind has no pods."""
    try:
        return references_of_pod(dotpaths.get(workload, pod_spec_path(workload)))
    except OverrideError:
        return set()


def _listed(fed_object: Mapping[str, Any], find_type: FindType) -> tuple[set[Reference], str]:
    """Return the explicit followers of kinds that may follow, and what is wrong with the annotation."""
    try:
        listed = listed_followers(fed_object["metadata"].get("annotations") or {})
    except FollowersError as error:
        return set(), str(error)
    allowed = {ref for ref in listed if may_follow(ref.group, ref.kind, find_type(ref.group, ref.kind))}
    wrong = sorted({f"{ref.group}/{ref.kind}".lstrip("/") for ref in listed - allowed})
    return allowed, f"annotation {names.FOLLOWERS}: objects of kind {', '.join(wrong)} cannot follow" if wrong else ""


def _overridden_needs(
    fed_object: Mapping[str, Any], type_: FederatedType, everywhere: frozenset[str]
) -> Iterable[tuple[str, set[Reference]]]:
    """Yield what the pods need in each cluster whose overrides may introduce a reference."""
    spec = fed_object["spec"]
    pod_path = pod_spec_path(spec["template"])
    clusters = {
        entry["cluster"]
        for controller in spec.get("overrides") or ()
        for entry in controller.get("clusters") or ()
        if any(_may_refer(str(patch.get("path") or ""), pod_path) for patch in entry.get("patches") or ())
    }
    renderer = Renderer(fed_object, type_) if clusters else None
    for cluster in clusters & everywhere:
        assert renderer is not None
        try:
            yield cluster, needs_of(renderer.render(cluster).object)
        except RenderError:
            continue  # It cannot be dispatched there, and sync says so.


@lru_cache(maxsize=4096)
def _may_refer(path: str, pod_path: tuple[str, ...]) -> bool:
    """Say whether a patch at the path may introduce a reference: most set an image, a command or replicas."""
    try:
        keys = parse_pointer(path)
    except OverrideError:
        return False
    if len(keys) <= len(pod_path):
        return keys == pod_path[: len(keys)]
    if keys[: len(pod_path)] != pod_path:
        return False
    field, *inside = keys[len(pod_path) :]
    if field not in _REFERRING:
        return False
    return field not in _CONTAINERS or len(inside) < 2 or inside[1] in _REFERRING_OF_CONTAINER
