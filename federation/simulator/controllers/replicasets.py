"""The simulated controller of ReplicaSets, and of ReplicationControllers, which are the same.

It creates and deletes pods until there are `spec.replicas`, and writes the status. Terminating pods do not count.
Surplus pods are deleted in this order: unassigned before assigned, Pending before Unknown before Running, not ready
before ready, lower deletion cost before higher, younger before older. Read `kubelet.py` for the pods themselves.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from federation.api.names import DEPLOYMENT_REPLICA_FAILURE as REPLICA_FAILURE
from federation.api.names import POD_DELETION_COST
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import PODS, REPLICA_SETS, Object, Resource
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import on_dependent_change
from federation.simulator.controllers.memberparts import Member

_DONE = Result()
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController:
    """Reconciles the ReplicaSets of one member, or its ReplicationControllers."""

    def __init__(self, member: Member, resource: Resource = REPLICA_SETS) -> None:
        self._client = member.client
        self._resource = resource
        self._replica_sets = replica_sets = member.cache(resource)
        self._control = member.pods
        self._clock = member.clock
        self._suffixes = member.suffixes
        self.controller = member.controller(f"sim-{resource.kind.lower()}", self._reconcile)
        replica_sets.add_handler(podsof.on_spec_change(self.controller))
        handle = on_dependent_change(self.controller, resource.kind, replica_sets)

        def pod_changed(old: Object | None, new: Object | None) -> None:
            if old is None or new is None or _facts(old) != _facts(new):
                handle(old, new)

        member.cache(PODS).add_handler(pod_changed)

    async def _reconcile(self, key: Key) -> Result:
        replica_set = self._replica_sets.get(key.namespace, key.name)
        if replica_set is None or "deletionTimestamp" in replica_set["metadata"]:
            return _DONE
        await self._control.claim(replica_set, self._resource, may_take=podsof.is_active)
        active = [pod for pod in self._control.owned(replica_set) if podsof.is_active(pod)]
        missing = int(replica_set["spec"].get("replicas", 1)) - len(active)
        is_complete = abs(missing) <= podsof.BURST_MAX
        refusal: ApiError | None = None
        if missing > 0:
            try:
                is_complete &= await self._create_pods(replica_set, min(missing, podsof.BURST_MAX))
            except ApiError as error:
                refusal = error
        elif missing < 0:
            await self._control.delete(rank_for_deletion(active)[: min(-missing, podsof.BURST_MAX)])
        active = [pod for pod in self._control.owned(replica_set) if podsof.is_active(pod)]
        wait_s = await self._write_status(replica_set, active, refusal)
        if refusal is not None:
            raise refusal
        if not is_complete:
            self.controller.enqueue(key)
        return Result(requeue_after_s=wait_s)

    async def _create_pods(self, replica_set: Object, count: int) -> bool:
        template, name = replica_set["spec"]["template"], replica_set["metadata"]["name"]
        names = [f"{name}-{self._suffixes.new()}" for _ in range(count)]
        pods = [podsof.to_pod(replica_set, self._resource, template, each) for each in names]
        return await self._control.create(replica_set, pods)

    async def _write_status(self, replica_set: Object, active: list[Object], refusal: ApiError | None) -> float | None:
        """Write the status; return the seconds until it changes because a ready pod becomes available."""
        min_ready_s, now = int(replica_set["spec"].get("minReadySeconds", 0)), self._clock.now()
        counts = {
            "fullyLabeledReplicas": len(active),
            "readyReplicas": sum(map(podsof.is_ready, active)),
            "availableReplicas": sum(podsof.is_available(pod, min_ready_s, now) for pod in active),
        }
        status: Object = {"replicas": len(active), "observedGeneration": replica_set["metadata"].get("generation", 1)}
        status.update({key: count for key, count in counts.items() if count})
        if refusal is not None:
            status["conditions"] = [_failure(replica_set, refusal.message, to_rfc3339(now))]
        await podsof.write_status(self._client, self._replica_sets, self._resource, replica_set, status)
        return podsof.next_available_s(active, min_ready_s, now)


def _facts(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a ReplicaSet reads of a pod."""
    meta = pod["metadata"]
    return podsof.is_active(pod), podsof.is_ready(pod), meta.get("labels"), meta.get("ownerReferences")


def _failure(replica_set: Mapping[str, Any], message: str, now: str) -> Object:
    """Return the condition of a ReplicaSet whose pods are refused."""
    old = find((replica_set.get("status") or {}).get("conditions"), REPLICA_FAILURE)
    since = old["lastTransitionTime"] if old is not None else now
    return {
        "type": REPLICA_FAILURE,
        "status": "True",
        "reason": podsof.FAILED_CREATE,
        "message": message,
        "lastTransitionTime": since,
    }


def rank_for_deletion(active: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the pods in the order in which surplus ones are deleted."""
    return sorted(
        active,
        key=lambda pod: (
            bool(pod["spec"].get("nodeName")),
            _PHASES.get(podsof.phase_of(pod), 0),
            podsof.is_ready(pod),
            _deletion_cost(pod),
            _youngest_first(pod),
            pod["metadata"]["name"],
        ),
    )


def _deletion_cost(pod: Mapping[str, Any]) -> int:
    """Return the pod's deletion cost; 0 if it has none or an invalid one, as in Kubernetes."""
    text = (pod["metadata"].get("annotations") or {}).get(POD_DELETION_COST, "")
    with contextlib.suppress(ValueError):
        cost = int(text)
        if str(cost) == text and -(2**31) <= cost < 2**31:
            return cost
    return 0


def _youngest_first(pod: Mapping[str, Any]) -> tuple[int, ...]:
    """Return a sort key that puts younger pods first: RFC 3339 texts sort by time, so negate each character."""
    return tuple(-ord(char) for char in pod["metadata"]["creationTimestamp"])
