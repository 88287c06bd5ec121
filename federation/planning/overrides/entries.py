"""Plan the override controller's patch of a federated object: its overrides and the pending controllers. Pure.

`policies.py` computes the overrides; `controllers/override` sends the patch.

Reference: docs/reference/overrides.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    effective_placement,
    to_merge_patch,
    with_annotations,
    with_overrides,
)
from federation.planning.overrides.patches import Patches
from federation.planning.overrides.policies import (
    Cluster,
    Policy,
    PolicyReference,
    applied_policies,
    compute_overrides,
)


def plan_override_patch(
    federated: Mapping[str, Any],
    stages: Sequence[Sequence[str]],
    policies: Sequence[Policy],
    find_cluster: Callable[[str], Mapping[str, Any] | None],
) -> Part | None:
    """Return the merge patch of the override controller, None when nothing changes.

    `find_cluster` returns the FederatedCluster of a name; OverrideError when the policies do not fit the object.
    """
    found = (find_cluster(name) for name in sorted(effective_placement(federated)))
    clusters = [
        Cluster(cluster["metadata"]["name"], cluster["metadata"].get("labels") or {})
        for cluster in found
        if cluster is not None
    ]
    overrides = compute_overrides(federated["spec"]["template"], policies, clusters)
    applied = applied_policies(policies, [cluster for cluster in clusters if cluster.name in overrides])
    return plan_overrides(federated, names.OVERRIDE_CONTROLLER, overrides, stages, applied)


def plan_overrides(
    federated: Mapping[str, Any],
    controller: str,
    overrides: Mapping[str, Patches],
    stages: Sequence[Sequence[str]],
    policies: Iterable[PolicyReference] = (),
) -> Part | None:
    """Return the merge patch that stores the overrides and advances the pipeline, None when nothing changes.

    `stages` is the pipeline of the object's type. `policies` are recorded as the origin of the overrides.
    """
    stored = with_overrides(federated, controller, overrides)
    annotations: dict[str, str | None] = {names.OVERRIDE_POLICIES: ",".join(map(str, policies)) or None}
    if stored:
        # A policy applies now, so the whole pipeline of the type is in force again.
        annotations[names.IDLE_CONTROLLERS] = None
    pending = pendingcontrollers.pending_stages(federated)
    after = pendingcontrollers.advance(pending, controller, is_changed=bool(stored), pipeline=stages)
    if after != pending:
        annotations[names.PENDING_CONTROLLERS] = pendingcontrollers.to_annotation(after)
    return to_merge_patch(federated, stored, with_annotations(federated, annotations))
