"""The decisions of the simulated StatefulSet controller: which pods to create and delete next, and the status. Pure.

The rules are those of Kubernetes. Under OrderedReady one step is made at a time: pods are created in ascending order,
each when the one before is available; surplus pods and pods of an old revision are deleted in descending order.
Under Parallel creation and scaling do not wait, updates do. `spec.ordinals.start` shifts the range of ordinals; pods
below start + partition keep the current revision.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.revisions import REVISION_LABEL

_NAME = re.compile(r"(.*)-([0-9]+)$")


@dataclass(frozen=True, slots=True)
class Scope:
    """The fields of a StatefulSet's spec that decide, with Kubernetes' defaults."""

    start: int
    replicas: int
    is_parallel: bool
    is_rolling: bool
    partition: int
    """Ordinals below start + partition keep the current revision; without a rolling update no pod does."""
    min_ready_s: int

    @classmethod
    def of(cls, stateful_set: Mapping[str, Any]) -> "Scope":
        """Return the scope of a StatefulSet."""
        spec = stateful_set["spec"]
        strategy = spec.get("updateStrategy") or {}
        return cls(
            start=int((spec.get("ordinals") or {}).get("start", 0)),
            replicas=int(spec.get("replicas", 1)),
            is_parallel=spec.get("podManagementPolicy") == "Parallel",
            is_rolling=strategy.get("type", "RollingUpdate") == "RollingUpdate",
            partition=int((strategy.get("rollingUpdate") or {}).get("partition", 0)),
            min_ready_s=int(spec.get("minReadySeconds", 0)),
        )

    @property
    def ordinals(self) -> range:
        """The ordinals that should have a pod."""
        return range(self.start, self.start + self.replicas)

    def is_old(self, ordinal: int) -> bool:
        """Return True if a new pod of the ordinal gets the current revision, not the update revision."""
        return self.is_rolling and ordinal < self.start + self.partition


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now; both empty when there is nothing to do or a pod has to become available first."""

    create: tuple[int, ...] = ()
    """Ordinals."""
    delete: tuple[str, ...] = ()
    """Names of pods."""


def ordinal_of(pod: Mapping[str, Any]) -> int:
    """Return the ordinal in a pod's name, -1 when there is none."""
    matched = _NAME.fullmatch(pod["metadata"]["name"])
    return int(matched[2]) if matched else -1


def plan_step(scope: Scope, pods: Sequence[Mapping[str, Any]], update_revision: str, now: datetime) -> Step:
    """Return the next step from the pods that the StatefulSet controls."""
    by_ordinal = {ordinal_of(pod): pod for pod in pods}
    wanted = [(ordinal, by_ordinal.get(ordinal)) for ordinal in scope.ordinals]
    condemned = [by_ordinal[o] for o in sorted(by_ordinal, reverse=True) if o >= 0 and o not in scope.ordinals]
    step = _plan_replicas(scope, wanted, now)
    if step is None or scope.is_parallel:
        scale_down = _plan_scale_down(scope, condemned, [pod for _, pod in wanted], now)
        if scale_down is not None:
            step = _join(step, scale_down)
    if step is not None:
        return step
    if not scope.is_rolling:
        return Step()
    return _plan_update(scope, [pod for _, pod in wanted if pod is not None], update_revision, now)


def _join(first: Step | None, second: Step) -> Step:
    return second if first is None else Step(first.create + second.create, first.delete + second.delete)


def _plan_replicas(scope: Scope, wanted: Sequence[tuple[int, Mapping[str, Any] | None]], now: datetime) -> Step | None:
    """Return the step for the ordinals that should have a pod, None when all are as they should be."""
    create, delete = [], []
    for ordinal, pod in wanted:
        if pod is None:
            create.append(ordinal)
        elif podsof.is_finished(pod):
            if not podsof.is_terminating(pod):
                delete.append(pod["metadata"]["name"])
        elif scope.is_parallel or _is_usable(pod, scope, now):
            continue
        if not scope.is_parallel:
            return Step(tuple(create), tuple(delete))
    return Step(tuple(create), tuple(delete)) if create or delete else None


def _plan_scale_down(
    scope: Scope,
    condemned: Sequence[Mapping[str, Any]],
    wanted: Sequence[Mapping[str, Any] | None],
    now: datetime,
) -> Step | None:
    """Return the step for surplus pods, highest ordinal first, None when there are none to wait for."""
    if scope.is_parallel:
        names = tuple(pod["metadata"]["name"] for pod in condemned if not podsof.is_terminating(pod))
        return Step(delete=names) if names else None
    if not condemned:
        return None
    unhealthy = [pod for pod in (*wanted, *reversed(condemned)) if pod is not None and not _is_usable(pod, scope, now)]
    highest = condemned[0]
    # Only the first unhealthy pod of all may go while another is unhealthy, so that no two are missing at once.
    if podsof.is_terminating(highest) or (
        unhealthy and not _is_usable(highest, scope, now) and highest is not unhealthy[0]
    ):
        return Step()
    return Step(delete=(highest["metadata"]["name"],))


def _plan_update(scope: Scope, replicas: Sequence[Mapping[str, Any]], update_revision: str, now: datetime) -> Step:
    """Return the deletion of the highest pod of an old revision, once all pods above it are available."""
    for pod in reversed(replicas[scope.partition :]):
        if revision_of(pod) != update_revision and not podsof.is_terminating(pod):
            return Step(delete=(pod["metadata"]["name"],))
        if not _is_usable(pod, scope, now):
            return Step()
    return Step()


def _is_usable(pod: Mapping[str, Any], scope: Scope, now: datetime) -> bool:
    return not podsof.is_terminating(pod) and podsof.is_available(pod, scope.min_ready_s, now)


def revision_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the pod's revision, "" without one."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def compute_status(
    stateful_set: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    current_revision: str,
    update_revision: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the status; a finished rolling update makes the update revision the current one."""
    scope = Scope.of(stateful_set)
    staying = [pod for pod in pods if not podsof.is_terminating(pod)]
    ready = [pod for pod in pods if podsof.phase_of(pod) == "Running" and podsof.is_ready(pod)]
    updated = sum(revision_of(pod) == update_revision for pod in staying)
    current = sum(revision_of(pod) == current_revision for pod in staying)
    if scope.is_rolling and updated == len(ready) == len(pods) == scope.replicas:
        current_revision, current = update_revision, updated
    counts = {"readyReplicas": len(ready), "currentReplicas": current, "updatedReplicas": updated}
    return {
        "observedGeneration": stateful_set["metadata"].get("generation", 1),
        "replicas": len(pods),
        **{key: count for key, count in counts.items() if count},
        "currentRevision": current_revision,
        "updateRevision": update_revision,
        "collisionCount": 0,
        "availableReplicas": sum(podsof.is_available(pod, scope.min_ready_s, now) for pod in ready),
    }
