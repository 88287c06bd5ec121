"""The decisions of the simulated CloneSet controller: pods to create, delete and update next, and the status. Pure.

The rules are those of OpenKruise: the partition is the number of pods that stay on an old revision; an update may make
`maxUnavailable` pods unavailable and have `maxSurge` pods more; pods in `podsToDelete` are deleted first and replaced
unless there are too many pods. Read `inplace.py` for updates that keep the pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.selectors import format_label_selector
from federation.simulator.controllers import inplace
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.replicasets import rank_for_deletion
from federation.simulator.controllers.revisions import REVISION_LABEL
from federation.simulator.controllers.rollout import resolve_percentage

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The fields of a CloneSet's spec that decide, as numbers of pods, with OpenKruise's defaults."""

    replicas: int
    partition: int
    unavailable_max: int
    surge_max: int
    scale_unavailable_max: int
    pods_to_delete: frozenset[str]
    update_type: str
    is_paused: bool
    min_ready_s: int

    @classmethod
    def of(cls, clone_set: Mapping[str, Any]) -> "Scope":
        """Return the scope of a CloneSet."""
        spec = clone_set["spec"]
        strategy, scaling = spec.get("updateStrategy") or {}, spec.get("scaleStrategy") or {}
        replicas = int(spec.get("replicas", 1))
        surge = _number(strategy.get("maxSurge"), 0, replicas)
        unavailable = _number(strategy.get("maxUnavailable"), "20%", replicas, round_up=surge == 0)
        return cls(
            replicas=replicas,
            partition=min(_number(strategy.get("partition"), 0, replicas), replicas),
            unavailable_max=unavailable if unavailable or surge else 1,
            surge_max=surge,
            scale_unavailable_max=_number(scaling.get("maxUnavailable"), replicas, replicas),
            pods_to_delete=frozenset(scaling.get("podsToDelete") or ()),
            update_type=strategy.get("type") or inplace.RECREATE,
            is_paused=bool(strategy.get("paused")),
            min_ready_s=int(spec.get("minReadySeconds") or 0),
        )

    @property
    def updated(self) -> int:
        """The number of pods that should have the newest revision."""
        return self.replicas - self.partition


def _number(value: Any, default: int | str, total: int, *, round_up: bool = True) -> int:
    return resolve_percentage(default if value is None else value, total, round_up=round_up)


@dataclass(frozen=True, slots=True)
class Step:
    """The next actions; all empty when there is nothing to do or a pod has to become available first."""

    create_updated: int = 0
    create_old: int = 0
    delete: tuple[str, ...] = ()
    """Names of pods."""
    update: tuple[str, ...] = ()
    """Names of pods to bring to the newest revision, in place or by deletion."""


def plan_step(scope: Scope, pods: Sequence[Pod], update_revision: str, now: datetime) -> Step:
    """Return the next step from the active pods that the CloneSet controls."""
    old = [pod for pod in pods if revision_of(pod) != update_revision]
    named = [pod for pod in pods if pod["metadata"]["name"] in scope.pods_to_delete]
    to_update = 0 if scope.is_paused else min(len(old), max(0, scope.updated - (len(pods) - len(old))))
    wanted = scope.replicas + min(scope.surge_max, max(to_update, len(named)))
    if len(pods) < wanted:
        unavailable = sum(not _is_available(pod, scope, now) for pod in pods)
        count = min(wanted - len(pods), max(0, scope.scale_unavailable_max - unavailable))
        stay = min(count, max(0, scope.partition - len(old)))
        return Step(create_updated=count - stay, create_old=stay)
    surplus = max(0, len(pods) - wanted)
    spared = _rank_surplus(scope, pods, old, named)
    delete, budget = _affordable([*spared[:surplus], *named[surplus:]], scope, _budget(scope, pods, now), now)
    candidates = rank_for_deletion(pod for pod in old if pod not in delete)[:to_update]
    update, _ = _affordable(candidates, scope, budget, now)
    return Step(delete=_names(delete), update=_names(update))


def _budget(scope: Scope, pods: Sequence[Pod], now: datetime) -> int:
    """Return the number of available pods that may become unavailable."""
    return scope.unavailable_max - scope.replicas + sum(_is_available(pod, scope, now) for pod in pods)


def _affordable(candidates: Iterable[Pod], scope: Scope, budget: int, now: datetime) -> tuple[list[Pod], int]:
    """Return the candidates that the budget covers, and the rest of it. Unavailable pods cost nothing."""
    found = []
    for pod in candidates:
        is_available = _is_available(pod, scope, now)
        if budget > 0 or not is_available:
            budget -= is_available
            found.append(pod)
    return found, budget


def _rank_surplus(scope: Scope, pods: Sequence[Pod], old: Sequence[Pod], named: Sequence[Pod]) -> list[Pod]:
    """Return the pods in the order of a scale-down: named ones, then those of the revision that has too many."""
    others = [pod for pod in rank_for_deletion(pods) if pod not in named]
    spare = max(0, len(old) - scope.partition)
    surplus_old = [pod for pod in others if pod in old][:spare]
    rest = [*(pod for pod in others if pod not in old), *(pod for pod in others if pod in old)]
    return [*named, *surplus_old, *(pod for pod in rest if pod not in surplus_old)]


def _names(pods: Sequence[Pod]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pod["metadata"]["name"] for pod in pods))


def _is_available(pod: Pod, scope: Scope, now: datetime) -> bool:
    return podsof.is_available(pod, scope.min_ready_s, now) and not inplace.is_updating(pod)


def revision_of(pod: Pod) -> str:
    """Return the name of the pod's revision, "" without one."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def compute_status(
    clone_set: Mapping[str, Any], pods: Sequence[Pod], current_revision: str, update_revision: str, now: datetime
) -> dict[str, Any]:
    """Return the status from the active pods; a finished update makes the update revision the current one."""
    scope = Scope.of(clone_set)
    updated = [pod for pod in pods if revision_of(pod) == update_revision]
    available = [pod for pod in updated if _is_available(pod, scope, now)]
    if len(available) == len(pods) == scope.replicas:
        current_revision = update_revision
    return {
        "observedGeneration": clone_set["metadata"].get("generation", 1),
        "replicas": len(pods),
        "readyReplicas": sum(map(podsof.is_ready, pods)),
        "availableReplicas": sum(_is_available(pod, scope, now) for pod in pods),
        "updatedReplicas": len(updated),
        "updatedReadyReplicas": sum(map(podsof.is_ready, updated)),
        "updatedAvailableReplicas": len(available),
        "expectedUpdatedReplicas": scope.updated,
        "currentRevision": current_revision,
        "updateRevision": update_revision,
        "collisionCount": 0,
        "labelSelector": format_label_selector(clone_set["spec"].get("selector") or {}),
    }
