"""Plan the override controller's patch of a federated object: its overrides and the pending controllers. Pure.

`policies.py` computes the overrides; `controllers/override` sends the patch.

Reference: docs/reference/overrides.md.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.planning.authors import override_authors, to_annotation
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    effective_placement,
    overrides_of,
    to_merge_patch,
    with_annotations,
    with_overrides,
)
from federation.planning.overrides.budget import grown_clusters, merged_problem, no_room, rollout_problem
from federation.planning.overrides.errors import FAILED_OVERRIDES, OverrideError
from federation.planning.overrides.patches import ClusterPatches, Patch, Patches
from federation.planning.overrides.policies import (
    Cluster,
    Policy,
    PolicyReference,
    applied_policies,
    compute_overrides,
)
from federation.planning.waves.rolloutpart import has_waves
from federation.planning.waves.waverules import mark_change

_FAILURE_CHARACTERS_MAX = 512
"""Of one cluster's error: all of them are in one annotation, and the condition has more of the text."""
_DESCRIBED_CHARACTERS_MAX = 2048
"""Of one error in the condition: errors quote policies, and every object of a policy has its own copy."""


@dataclass(frozen=True, slots=True)
class OverridePlan:
    """The merge patch of the override controller, None when nothing changes, and the clusters whose overrides failed.

    `failures` has one line per distinct error, with the clusters that it holds.
    """

    patch: Part | None
    failures: tuple[str, ...] = ()


def plan_override_patch(
    federated: Mapping[str, Any],
    stages: Sequence[Sequence[str]],
    policies: Sequence[Policy],
    find_cluster: Callable[[str], Mapping[str, Any] | None],
    *,
    kept: Collection[str] = (),
    is_full: bool = False,
    guarded: Mapping[str, str | None] | None = None,
) -> OverridePlan:
    """Return the plan for one object; `find_cluster` returns the FederatedCluster of a name.

    A cluster whose overrides cannot be computed keeps its stored ones and is recorded in the annotation
    `failed-overrides`: sync writes nothing there, and delivers to the others. The clusters in `kept` keep their stored
    overrides too, and are delivered to. `guarded` are the annotations of the guard. Overrides or waves that are too
    large (`budget.py`) fail in every cluster. With `is_full`, the namespace has no room for overrides: they fail in
    the clusters where they would grow.
    """
    found = (find_cluster(name) for name in sorted(effective_placement(federated)))
    clusters = [
        Cluster(cluster["metadata"]["name"], cluster["metadata"].get("labels") or {})
        for cluster in found
        if cluster is not None
    ]
    failures: dict[str, OverrideError] = {}
    overrides = compute_overrides(federated["spec"]["template"], policies, clusters, failures)
    rollout, error = _rollout(federated, policies)
    stored = overrides_of(federated, names.OVERRIDE_CONTROLLER)
    if is_full:
        failures |= dict.fromkeys(grown_clusters(overrides, stored), no_room([each.display for each in policies]))
    if error is None and (failures or kept):
        merged = _with_stored(overrides, stored, failures.keys() | set(kept))
        error = merged_problem(
            federated["spec"]["template"], len(clusters), merged, [each.display for each in policies]
        )
    if error is not None:
        failures = {cluster.name: error for cluster in clusters}
        overrides = {}
    applied = applied_policies(policies, [cluster for cluster in clusters if cluster.name in overrides])
    authors = [author for policy in policies if policy.reference in applied for author in policy.authors]
    if unchanged := failures.keys() | set(kept):
        overrides = _with_stored(overrides, stored, unchanged)
        authors += override_authors(federated)
    further = {
        **(guarded or {}),
        names.OVERRIDE_ROLLOUT: rollout,
        names.OVERRIDE_AUTHORS: to_annotation(authors),
    }
    patch = plan_overrides(federated, names.OVERRIDE_CONTROLLER, overrides, stages, applied, failures, further)
    return OverridePlan(patch, _describe(failures))


def _with_stored(
    overrides: ClusterPatches, stored: Mapping[str, Sequence[Patch]], unchanged: Collection[str]
) -> ClusterPatches:
    """Return the overrides with the stored ones of the unchanged clusters."""
    changed = {cluster: patches for cluster, patches in overrides.items() if cluster not in unchanged}
    return changed | {cluster: [dict(patch) for patch in stored[cluster]] for cluster in unchanged if cluster in stored}


def _rollout(federated: Mapping[str, Any], policies: Sequence[Policy]) -> tuple[str | None, OverrideError | None]:
    """Return the annotation with the rollout rules of the first policy that has some, None without any.

    With rules that are too large, the stored annotation and an error.
    """
    found = next((policy for policy in policies if policy.rollout), None)
    if found is None or not has_waves(federated["spec"]["template"]):
        return None, None
    if problem := rollout_problem(found.rollout):
        held = federated["metadata"].get("annotations") or {}
        return held.get(names.OVERRIDE_ROLLOUT), OverrideError(problem, "spec.rollout").of(found.display)
    return found.rollout, None


def _describe(failures: Mapping[str, OverrideError]) -> tuple[str, ...]:
    clusters: dict[str, list[str]] = {}
    for cluster, error in failures.items():
        text = str(error)
        is_long = len(text) > _DESCRIBED_CHARACTERS_MAX
        clusters.setdefault(text[:_DESCRIBED_CHARACTERS_MAX] + "…" if is_long else text, []).append(cluster)
    return tuple(f"{message} in clusters [{','.join(sorted(found))}]" for message, found in clusters.items())


def plan_overrides(
    federated: Mapping[str, Any],
    controller: str,
    overrides: Mapping[str, Patches],
    stages: Sequence[Sequence[str]],
    policies: Iterable[PolicyReference] = (),
    failures: Mapping[str, OverrideError] | None = None,
    further: Mapping[str, str | None] | None = None,
) -> Part | None:
    """Return the merge patch that stores the overrides and advances the pipeline, None when nothing changes.

    `stages` is the pipeline of the object's type. `policies` are recorded as the origin of the overrides, `failures`
    as the clusters that get nothing, `further` are other annotations to write.
    """
    stored = with_overrides(federated, controller, overrides)
    failed = {cluster: str(error)[:_FAILURE_CHARACTERS_MAX] for cluster, error in (failures or {}).items()}
    annotations: dict[str, str | None] = {
        names.OVERRIDE_POLICIES: ",".join(map(str, policies)) or None,
        **FAILED_OVERRIDES.entry(failed),
        **(further or {}),
    }
    if stored:
        # A policy applies now, so the whole pipeline of the type is in force again.
        annotations[names.IDLE_CONTROLLERS] = None
        if (federated.get("status") or {}).get("clusters"):
            annotations |= mark_change(federated)
    pending = pendingcontrollers.pending_stages(federated)
    after = pendingcontrollers.advance(pending, controller, is_changed=bool(stored), pipeline=stages)
    if after != pending:
        annotations[names.PENDING_CONTROLLERS] = pendingcontrollers.to_annotation(after)
    return to_merge_patch(federated, stored, with_annotations(federated, annotations))
