"""The simulated kubelet of all nodes of one member: starts, restarts, ends and removes bound pods.

A pod is Running `pod_start_s` after its binding or after a change of its images, and gone `pod_stop_s` after its
deletion. `podstatus` says what is reported, and how annotations make containers exit. Times are kept in memory; after a
restart of the member they are computed again from the pods' status.
"""

from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.runtime.informer import Informer
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers import podstatus
from federation.simulator.controllers.inplace import is_updating
from federation.simulator.controllers.podstatus import Behaviour

_DONE = Result()
_KILLED = 137
"""The exit code of containers that are killed."""


class Kubelet:
    """Starts and stops the pods of every node of one member; its keys are pods."""

    def __init__(
        self, client: Client, pods: Informer, clock: Clock, *, start_s: float, stop_s: float, workers: int
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._start_s = start_s
        self._stop_s = stop_s
        self._addresses = 0
        self._exits_at_s: dict[Key, float] = {}
        """When running containers exit, or waiting ones restart, on the monotonic clock."""
        self.controller = Controller("sim-kubelet", self._reconcile, workers=workers, clock=clock)
        pods.add_handler(self._pod_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._exits_at_s.pop(key_of(old or {}), None)
            return
        if not new["spec"].get("nodeName"):
            return
        key = key_of(new)
        if podsof.is_terminating(new):
            if old is None or not podsof.is_terminating(old):
                self.controller.queue.add_after(key, self._stop_s)
        elif old is None or not old["spec"].get("nodeName"):
            self._addresses = max(self._addresses, _to_number((new.get("status") or {}).get("podIP", "")))
            self.controller.queue.add_after(key, self._start_s)
        elif is_updating(new):
            self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not pod["spec"].get("nodeName"):
            return _DONE
        try:
            if podsof.is_terminating(pod):
                return await self._remove(pod)
            if podsof.is_finished(pod):
                return _DONE
            try:
                behaviour = Behaviour.of(pod)
            except ConfigurationError as error:
                await self._report(pod, podstatus.compute_refused_status(pod, str(error), self._now()))
                return _DONE
            return await self._run(key, pod, behaviour)
        except NotFound:
            return _DONE

    async def _run(self, key: Key, pod: Object, behaviour: Behaviour) -> Result:
        """Start, end or restart the containers when it is time, and come back for the next of these."""
        now_s = self._clock.monotonic()
        if podsof.phase_of(pod) == "Pending":
            await self._start(pod, behaviour)
            return self._wait_for_exit(key, now_s, behaviour)
        if is_updating(pod):
            await self._report(pod, podstatus.compute_updating_status(pod, self._now()))
            self._exits_at_s[key] = now_s + self._start_s
            return Result(requeue_after_s=self._start_s)
        is_waiting = _is_waiting(pod)
        if not is_waiting and behaviour.run_s is None:
            return _DONE
        due_s = self._exits_at_s.setdefault(key, self._recall_due_s(pod, behaviour))
        if due_s > now_s:
            return Result(requeue_after_s=due_s - now_s)
        if is_waiting:
            await self._start(pod, behaviour)
            return self._wait_for_exit(key, now_s, behaviour)
        return await self._exit(key, pod, behaviour)

    def _wait_for_exit(self, key: Key, now_s: float, behaviour: Behaviour) -> Result:
        if behaviour.run_s is None:
            return _DONE
        self._exits_at_s[key] = now_s + behaviour.run_s
        return Result(requeue_after_s=behaviour.run_s)

    async def _exit(self, key: Key, pod: Object, behaviour: Behaviour) -> Result:
        owned = [each for uid in _owners(pod) for each in self._pods.by_index(podsof.BY_OWNER, uid)]
        failed = sum(podsof.phase_of(each) == "Failed" for each in owned)
        code = behaviour.code_after(failed + podstatus.restarts_of(pod))
        policy = pod["spec"].get("restartPolicy", "Always")
        self._exits_at_s.pop(key, None)
        if policy == "Always" or (policy == "OnFailure" and code):
            pause_s = podstatus.restart_pause_s(podstatus.restarts_of(pod) + 1)
            await self._report(pod, podstatus.compute_crash_status(pod, code, self._now()))
            self._exits_at_s[key] = self._clock.monotonic() + pause_s
            return Result(requeue_after_s=pause_s)
        await self._report(pod, podstatus.compute_ended_status(pod, code, self._now()))
        return _DONE

    def _recall_due_s(self, pod: Object, behaviour: Behaviour) -> float:
        """Return when the containers exit or restart, from the status that an earlier run of the member wrote."""
        first: Object = next(iter((pod.get("status") or {}).get("containerStatuses") or ()), {})
        state, last = first.get("state", {}), first.get("lastState", {})
        if "running" in state:
            since, pause_s = state["running"]["startedAt"], behaviour.run_s or 0.0
        else:
            since = last.get("terminated", {}).get("finishedAt", self._now())
            pause_s = podstatus.restart_pause_s(podstatus.restarts_of(pod))
        elapsed_s = (self._clock.now() - from_rfc3339(since)).total_seconds()
        return self._clock.monotonic() + pause_s - elapsed_s

    async def _start(self, pod: Object, behaviour: Behaviour) -> None:
        address = (pod.get("status") or {}).get("podIP") or self._next_address()
        status = podstatus.compute_running_status(pod, address, self._now(), becomes_ready=behaviour.becomes_ready)
        await self._report(pod, status)

    async def _remove(self, pod: Object) -> Result:
        meta = pod["metadata"]
        if podsof.owner_key(pod, "Job") is not None and not podsof.is_finished(pod):
            # The Job's finalizer holds the pod until the Job has counted how it ended.
            await self._report(pod, podstatus.compute_ended_status(pod, _KILLED, self._now()))
        if meta.get("deletionGracePeriodSeconds") != 0:
            await self._client.delete(PODS, meta["name"], meta["namespace"], grace_period_s=0, uid=meta["uid"])
        return _DONE

    async def _report(self, pod: Object, status: Object) -> None:
        meta = pod["metadata"]
        written = await self._client.patch(
            PODS, meta["name"], {"status": status}, namespace=meta["namespace"], subresource="status"
        )
        await self._pods.wait_for(written["metadata"]["resourceVersion"])

    def _next_address(self) -> str:
        self._addresses += 1
        return address_of(self._addresses)

    def _now(self) -> str:
        return to_rfc3339(self._clock.now())


def address_of(number: int) -> str:
    """Return the address of the pod with this number in its member."""
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _is_waiting(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("waiting" in each["state"] for each in statuses)


def _owners(pod: Object) -> list[str]:
    return [each["uid"] for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")]


def _to_number(address: str) -> int:
    """Return the number of an address that `address_of` gave, 0 for any other text."""
    parts = address.split(".")
    if len(parts) != 4:
        return 0
    return int(parts[1]) << 16 | int(parts[2]) << 8 | int(parts[3])
