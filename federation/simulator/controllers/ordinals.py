"""The decisions of the simulated StatefulSet controller: which pods to create and delete next, and the status. Pure.

The rules are those of Kubernetes. Under OrderedReady one step is made at a time: pods are created in ascending order,
each when the one before is available; surplus pods and pods of an old revision are deleted in descending order.
Under Parallel creation and scaling do not wait, updates do. `spec.ordinals.start` shifts the range of ordinals; the
first `partition` pods keep the current revision. The StatefulSet of apps.kruise.io also leaves ordinals out, and may
have several unavailable pods during an update.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from federation.api.resources import KRUISE_GROUP
from federation.apimachinery.selectors import format_label_selector
from federation.simulator.controllers import inplace
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.revisions import REVISION_LABEL
from federation.simulator.controllers.rollout import resolve_percentage

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
    unavailable_max: int = 1
    """Pods that may be unavailable during an update."""
    update_policy: str = inplace.RECREATE
    reserved: frozenset[int] = frozenset()
    """Ordinals that no pod has."""
    is_paused: bool = False
    """Whether no pod is updated."""

    @classmethod
    def of(cls, stateful_set: Mapping[str, Any]) -> "Scope":
        """Return the scope of a StatefulSet."""
        spec = stateful_set["spec"]
        strategy = spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        scope = cls(
            start=int((spec.get("ordinals") or {}).get("start", 0)),
            replicas=int(spec.get("replicas", 1)),
            is_parallel=spec.get("podManagementPolicy") == "Parallel",
            is_rolling=(strategy.get("type") or "RollingUpdate") == "RollingUpdate",
            partition=int(rolling.get("partition") or 0),
            min_ready_s=int(spec.get("minReadySeconds", 0)),
        )
        return scope._advanced(spec, rolling) if stateful_set["apiVersion"].startswith(f"{KRUISE_GROUP}/") else scope

    def _advanced(self, spec: Mapping[str, Any], rolling: Mapping[str, Any]) -> "Scope":
        """Return the scope with the fields that only the StatefulSet of apps.kruise.io has."""
        unavailable = rolling.get("maxUnavailable")
        if unavailable is None or not self.is_parallel:
            unavailable = 1
        return replace(
            self,
            min_ready_s=int(rolling.get("minReadySeconds") or 0),
            unavailable_max=max(1, resolve_percentage(unavailable, self.replicas, round_up=False)),
            update_policy=rolling.get("podUpdatePolicy") or inplace.RECREATE,
            reserved=frozenset(_parse_reserved(spec.get("reserveOrdinals") or ())),
            is_paused=bool(rolling.get("paused")),
        )

    @property
    def ordinals(self) -> Sequence[int]:
        """The ordinals that should have a pod."""
        if not self.reserved:
            return range(self.start, self.start + self.replicas)
        free = (ordinal for ordinal in itertools.count(self.start) if ordinal not in self.reserved)
        return tuple(itertools.islice(free, self.replicas))

    def is_old(self, ordinal: int) -> bool:
        """Return True if a new pod of the ordinal gets the current revision, not the update revision."""
        return self.is_rolling and ordinal in self.ordinals[: self.partition]


@dataclass(frozen=True, slots=True)
class Step:
    """The next actions; all empty when there is nothing to do or a pod has to become available first."""

    create: tuple[int, ...] = ()
    """Ordinals."""
    delete: tuple[str, ...] = ()
    """Names of pods."""
    update: tuple[str, ...] = ()
    """Names of pods to bring to the update revision, in place or by deletion."""


def _parse_reserved(entries: Iterable[int | str]) -> Iterator[int]:
    """Return the ordinals of numbers and ranges such as 3-5."""
    for entry in entries:
        first, _, last = str(entry).partition("-")
        yield from range(int(first), int(last or first) + 1)


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
    if not scope.is_rolling or scope.is_paused:
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
    """Return the highest pods of an old revision, as many as may be unavailable together with the pods above them."""
    update: list[str] = []
    unavailable = 0
    for pod in reversed(replicas[scope.partition :]):
        is_old = revision_of(pod) != update_revision and not podsof.is_terminating(pod)
        if is_old:
            update.append(pod["metadata"]["name"])
        if is_old or not _is_usable(pod, scope, now):
            unavailable += 1
        if unavailable >= scope.unavailable_max:
            break
    return Step(update=tuple(update))


def _is_usable(pod: Mapping[str, Any], scope: Scope, now: datetime) -> bool:
    is_available = podsof.is_available(pod, scope.min_ready_s, now) and not inplace.is_updating(pod)
    return is_available and not podsof.is_terminating(pod)


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
    advanced: dict[str, Any] = {}
    if stateful_set["apiVersion"].startswith(f"{KRUISE_GROUP}/"):
        new = [pod for pod in ready if revision_of(pod) == update_revision]
        counts["updatedReadyReplicas"] = len(new)
        counts["updatedAvailableReplicas"] = sum(podsof.is_available(pod, scope.min_ready_s, now) for pod in new)
        advanced["labelSelector"] = format_label_selector(stateful_set["spec"].get("selector") or {})
    return {
        "observedGeneration": stateful_set["metadata"].get("generation", 1),
        "replicas": len(pods),
        **{key: count for key, count in counts.items() if count},
        "currentRevision": current_revision,
        "updateRevision": update_revision,
        "collisionCount": 0,
        "availableReplicas": sum(podsof.is_available(pod, scope.min_ready_s, now) for pod in ready),
        **advanced,
    }
