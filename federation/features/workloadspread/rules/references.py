"""Find the WorkloadSpread of a pod: compare the pod's controllers with `spec.targetRef`. Pure.

A pod belongs to the target when its controller, or a controller above it, has the target's group, kind and name. Only
controllers of managed kinds are looked up. Reading them is I/O of the caller: `find_spread` yields each controller to
read.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.ownerreferences import Reference, owner_references
from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.totals import is_selected
from federation.planning.automigration.podanalysis import is_live

KRUISE = "apps.kruise.io"
GROUPS_BY_KIND = {
    "CloneSet": frozenset({KRUISE}),
    "Deployment": frozenset({"apps"}),
    "ReplicaSet": frozenset({"apps"}),
    "Job": frozenset({"batch"}),
    "StatefulSet": frozenset({"apps", KRUISE}),
}
"""The kinds that are managed without a whitelist, and their groups."""
_DEPTH_MAX = 8
"""Controllers above one pod that are read; references of hostile objects may form a cycle."""

SpreadsOf = Callable[[Mapping[str, Any]], Iterable[Object]]
"""Returns the WorkloadSpreads whose target is the object that a reference names."""


@dataclass(frozen=True, slots=True)
class CustomWorkload:
    """A kind of the whitelist; `replicas_path` is the dot path of its replicas, "" when it has none."""

    group: str
    version: str
    kind: str
    replicas_path: str = ""


@dataclass(frozen=True, slots=True)
class Whitelist:
    """Further kinds: workloads that a WorkloadSpread may target, and all kinds that may control their pods."""

    workloads: tuple[CustomWorkload, ...] = ()
    managed: frozenset[tuple[str, str]] = frozenset()
    """(group, kind) of the workloads and of their sub-resources."""

    def has_workload(self, group: str, kind: str) -> bool:
        """Return True if a WorkloadSpread may target this kind."""
        return any((workload.group, workload.kind) == (group, kind) for workload in self.workloads)

    def replicas_path(self, api_version: str, kind: str) -> str:
        """Return the path of the replicas of a kind in one version, "" when none is listed."""
        for workload in self.workloads:
            if (f"{workload.group}/{workload.version}".lstrip("/"), workload.kind) == (api_version, kind):
                return workload.replicas_path
        return ""


EMPTY_WHITELIST = Whitelist()


def parse_whitelist(text: str) -> Whitelist:
    """Return the whitelist in the JSON text of the ConfigMap `kruise-configuration`; InvalidInput when it is malformed.

    The format is {"workloads": [{Group, Version, Kind, replicasPath, subResources: [{Group, Version, Kind}]}]}.
    """
    parsed = parse_object(text)
    if parsed is None:
        raise InvalidInput("the whitelist of custom workloads is not a JSON object")
    workloads, managed = [], set()
    for entry in _objects(parsed, "workloads"):
        workloads.append(CustomWorkload(*_kind_of(entry), str(entry.get("replicasPath") or "")))
        for part in (entry, *_objects(entry, "subResources")):
            group, _, kind = _kind_of(part)
            managed.add((group, kind))
    return Whitelist(tuple(workloads), frozenset(managed))


def _objects(parent: Mapping[str, Any], field: str) -> list[Object]:
    listed = parent.get(field) or []
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise InvalidInput(f"the whitelist of custom workloads: {field} is not a list of objects")
    return listed


def _kind_of(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(entry.get("Group") or ""), str(entry.get("Version") or ""), str(entry.get("Kind") or "")


def group_of(reference: Mapping[str, Any]) -> str:
    """Return the API group in `apiVersion` of a reference or an object, "" for the core group."""
    group, slash, _ = str(reference.get("apiVersion") or "").partition("/")
    return group if slash else ""


def object_name(obj: Mapping[str, Any]) -> str:
    """Return the name in an object's metadata, "" when there is none."""
    return str((obj.get("metadata") or {}).get("name") or "")


def controller_owner(obj: Mapping[str, Any]) -> Reference | None:
    """Return the reference to the controlling owner, None when there is none."""
    references = owner_references(obj.get("metadata") or {})
    return next((reference for reference in references if reference.get("controller")), None)


def is_same_workload(target: Mapping[str, Any], reference: Mapping[str, Any]) -> bool:
    """Return True if both name the same object: group, kind and name are equal, the version is ignored."""
    return (group_of(target), target.get("kind"), target.get("name")) == (
        group_of(reference),
        reference.get("kind"),
        reference.get("name"),
    )


def target_key(namespace: str, reference: Mapping[str, Any]) -> str:
    """Return the same text for two references in a namespace exactly if `is_same_workload` is True for them."""
    return f"{namespace}/{group_of(reference)}/{reference.get('kind')}/{reference.get('name')}"


def is_managed(reference: Mapping[str, Any], whitelist: Whitelist = EMPTY_WHITELIST) -> bool:
    """Return True if pods below a controller of this kind can be managed."""
    group, kind = group_of(reference), str(reference.get("kind") or "")
    return group in GROUPS_BY_KIND.get(kind, ()) or (group, kind) in whitelist.managed


def find_spread(
    spreads_of: SpreadsOf, pod: Mapping[str, Any], whitelist: Whitelist = EMPTY_WHITELIST
) -> Generator[Reference, Mapping[str, Any] | None, Object | None]:
    """Return the WorkloadSpread of the pod's namespace that manages the pod, None when there is none.

    Pods that have ended or are being deleted are not managed.

    Yields references of controllers. Send the object that each names; None when it cannot be read, which ends the
    search. An object that does not exist is an error of the caller's: its pod must not be admitted unmanaged.
    """
    owner = controller_owner(pod)
    if owner is None or not is_managed(owner, whitelist) or not is_live(pod):
        return None
    for _ in range(_DEPTH_MAX):
        if owner is None:
            return None
        for spread in spreads_of(owner):
            if is_selected(spread, pod):
                return spread
        if not is_managed(owner, whitelist):
            return None
        read = yield owner
        owner = None if read is None else controller_owner(read)
    return None
