"""What the override controller writes on a federated object: its entry among the overrides, and its turn (spec §8).

Pure. `policies.py` computes what the entry holds; `controllers/override` sends the patch that is planned here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.resources import Object
from federation.planning import pipeline
from federation.planning.overrides.jsonpatch import is_json_equal
from federation.planning.overrides.policies import Cluster, Patches, Policy, compute_overrides, from_list, to_list
from federation.planning.placements import effective_placement


def stored_overrides(federated: Mapping[str, Any], controller: str) -> dict[str, Patches]:
    """Return the patches by cluster that the controller stored, {} when it stored none."""
    for entry in (federated.get("spec") or {}).get("overrides") or ():
        if entry.get("controller") == controller:
            return from_list(entry.get("clusters"))
    return {}


def plan_turn(
    federated: Mapping[str, Any],
    stages: Sequence[Sequence[str]],
    policies: Sequence[Policy],
    find_cluster: Callable[[str], Mapping[str, Any] | None],
) -> Object | None:
    """Return the merge patch of the override controller's turn, None when nothing changes.

    `find_cluster` returns the FederatedCluster of a name; OverrideError when the policies do not fit the object.
    """
    found = (find_cluster(name) for name in sorted(effective_placement(federated)))
    clusters = [
        Cluster(cluster["metadata"]["name"], cluster["metadata"].get("labels") or {})
        for cluster in found
        if cluster is not None
    ]
    overrides = compute_overrides(federated["spec"]["template"], policies, clusters)
    return plan_overrides(federated, names.OVERRIDE_CONTROLLER, overrides, stages)


def plan_overrides(
    federated: Mapping[str, Any],
    controller: str,
    overrides: Mapping[str, Patches],
    stages: Sequence[Sequence[str]],
) -> Object | None:
    """Return the merge patch that stores the overrides and ends the controller's turn, None when nothing changes.

    `stages` is the pipeline of the object's type. The list of overrides is replaced as a whole, so the patch holds the
    resourceVersion that it was made for.
    """
    pending = pipeline.pending(federated)
    is_changed = not _is_same(stored_overrides(federated, controller), overrides)
    metadata = federated["metadata"]
    annotations: dict[str, str | None] = {}
    if is_changed and names.IDLE_CONTROLLERS in (metadata.get("annotations") or {}):
        # Somebody has something to do now: from here on the whole pipeline of the type holds again.
        annotations[names.IDLE_CONTROLLERS] = None
    after = pipeline.after_acting(pending, controller, is_changed=is_changed, pipeline=stages)
    if after != pending:
        annotations[names.PENDING_CONTROLLERS] = pipeline.to_annotation(after)
    if not (is_changed or annotations):
        return None
    patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"]}}
    if annotations:
        patch["metadata"]["annotations"] = annotations
    if is_changed:
        patch["spec"] = {"overrides": _replaced(federated, controller, overrides)}
    return patch


def _replaced(federated: Mapping[str, Any], controller: str, overrides: Mapping[str, Patches]) -> list[Object]:
    """Return all entries with the controller's own replaced in place, removed when it is empty."""
    wanted: list[Object] = [{"controller": controller, "clusters": to_list(overrides)}] if overrides else []
    entries: list[Object] = []
    for entry in (federated.get("spec") or {}).get("overrides") or ():
        if entry.get("controller") == controller:
            entries += wanted
            wanted = []
        else:
            entries.append(entry)
    return entries + wanted


def _is_same(stored: Mapping[str, Patches], wanted: Mapping[str, Patches]) -> bool:
    """Compare without regard to null values: a patch without a value and one with null mean the same, and an API
    server may store either for the other.
    """
    return is_json_equal(_normal(stored), _normal(wanted))


def _normal(overrides: Mapping[str, Patches]) -> dict[str, Any]:
    return {
        cluster: [{key: value for key, value in patch.items() if value is not None} for patch in patches]
        for cluster, patches in overrides.items()
    }
