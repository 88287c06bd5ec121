"""The simulated kubelet of all nodes of one member: starts, restarts, ends and removes bound pods.

A pod is Running `pod_start_s` after its binding or after a change of its images, and gone `pod_stop_s` after its
deletion. It does not start without its ConfigMaps, Secrets and images (`podneeds`), which are looked for again.
`podstatus` says what is reported, and how annotations make containers exit. Times are kept in memory; after a restart
of the member they are computed again from the pods' status.
"""

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import PODS, Object
from federation.runtime.controller import Key, Result, key_of
from federation.runtime.events import WARNING
from federation.simulator.controllers import podneeds, podstatus
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import BY_OWNER
from federation.simulator.controllers.inplace import is_updating
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.podneeds import Problem
from federation.simulator.controllers.podstatus import Behaviour

_DONE = Result()
_RETRY_S, _RETRY_S_MAX, _RETRY_FACTOR = 1.0, 10.0, 1.5
"""Pauses before what keeps containers from starting is looked for again."""


class Kubelet:
    """Starts and stops the pods of every node of one member; its keys are pods."""

    def __init__(self, member: Member, *, start_s: float, stop_s: float) -> None:
        self._client = member.client
        self._pods = pods = member.cache(PODS)
        self._recorder = member.recorder
        self._clock = member.clock
        self._start_s = start_s
        self._stop_s = stop_s
        self._addresses = 0
        self._tries: dict[Key, int] = {}
        """How often the start of a pod has failed."""
        self._exits_at_s: dict[Key, float] = {}
        """When running containers exit, or waiting ones restart, on the monotonic clock."""
        self.controller = member.controller("sim-kubelet", self._reconcile)
        pods.add_handler(self._pod_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._exits_at_s.pop(key_of(old or {}), None)
            self._tries.pop(key_of(old or {}), None)
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
                text = str(error)
                status = podstatus.compute_waiting_status(pod, "CreateContainerConfigError", text, self._now())
                await self._report(pod, status)
                return _DONE
            return await self._run(key, pod, behaviour)
        except NotFound:
            return _DONE

    async def _run(self, key: Key, pod: Object, behaviour: Behaviour) -> Result:
        """Start, end or restart the containers when it is time, and come back for the next of these."""
        now_s = self._clock.monotonic()
        if podsof.phase_of(pod) == "Pending":
            return await self._try_start(key, pod, behaviour)
        if is_updating(pod):
            await self._report(pod, podstatus.compute_updating_status(pod, self._now()))
            self._exits_at_s[key] = now_s + self._start_s
            return Result(requeue_after_s=self._start_s)
        is_waiting = _is_waiting(pod)
        if not is_waiting and (result := await self._probe(pod, behaviour)) is not None:
            return result
        if not is_waiting and behaviour.run_s is None:
            return _DONE
        due_s = self._exits_at_s.setdefault(key, self._recall_due_s(pod, behaviour))
        if due_s > now_s:
            return Result(requeue_after_s=due_s - now_s)
        if is_waiting:
            return await self._try_start(key, pod, behaviour)
        return await self._exit(key, pod, behaviour)

    async def _try_start(self, key: Key, pod: Object, behaviour: Behaviour) -> Result:
        """Start the containers, or report what keeps them from starting, and come back."""
        problem = await self._find_problem(key, pod)
        if problem is not None:
            tries = self._tries[key] = self._tries.get(key, 0) + 1
            if not podstatus.is_waiting_for(pod, problem.reason, problem.message):
                status = podstatus.compute_waiting_status(pod, problem.reason, problem.message, self._now())
                await self._report(pod, status)
            self._recorder.event(pod, WARNING, problem.event, problem.event_message)
            pause_s = min(_RETRY_S * _RETRY_FACTOR ** min(tries, 16), _RETRY_S_MAX)
            self._exits_at_s[key] = self._clock.monotonic() + pause_s
            return Result(requeue_after_s=pause_s)
        self._tries.pop(key, None)
        if behaviour.init_code and podstatus.has_init_containers(pod):
            return await self._fail_init(pod, behaviour.init_code)
        await self._start(pod, behaviour)
        self._exits_at_s.pop(key, None)
        delays = [each for each in (behaviour.run_s, behaviour.evict_after_s) if each is not None]
        if behaviour.run_s is not None:
            self._exits_at_s[key] = self._clock.monotonic() + behaviour.run_s
        if behaviour.becomes_ready and behaviour.ready_after_s:
            delays.append(behaviour.ready_after_s)
        return Result(requeue_after_s=min(delays)) if delays else _DONE

    async def _fail_init(self, pod: Object, code: int) -> Result:
        """Report that an init container has failed, and come back for its restart if there is one."""
        if pod["spec"].get("restartPolicy") == "Never":
            await self._report(pod, podstatus.compute_ended_status(pod, code, self._now()))
            return _DONE
        await self._report(pod, podstatus.compute_init_crash_status(pod, code, self._now()))
        return Result(requeue_after_s=podstatus.restart_pause_s(podstatus.init_restarts_of(pod) + 1))

    async def _find_problem(self, key: Key, pod: Object) -> Problem | None:
        """Return what keeps the containers from starting, None if nothing does."""
        problem = podneeds.image_problem(pod["spec"], is_retry=key in self._tries)
        found: dict[tuple[str, str], Object | None] = {}
        for need in podneeds.needs_of(pod["spec"]) if problem is None else ():
            identity = need.resource.plural, need.name
            if identity not in found:
                try:
                    found[identity] = await self._client.get(need.resource, need.name, key.namespace)
                except NotFound:
                    found[identity] = None
            if (problem := podneeds.missing(need, found[identity], key.namespace)) is not None:
                break
        return problem

    async def _probe(self, pod: Object, behaviour: Behaviour) -> Result | None:
        """Evict a running pod, or make it ready, when it is time; return when to look again, None for nothing to do."""
        waits = []
        if behaviour.evict_after_s is not None:
            left_s = behaviour.evict_after_s - self._elapsed_s((pod.get("status") or {}).get("startTime"))
            if left_s <= 0:
                self._recorder.event(pod, WARNING, "Evicted", "The node was low on resource: memory.")
                await self._report(pod, podstatus.compute_evicted_status(pod, self._now()))
                return _DONE
            waits.append(left_s)
        if behaviour.becomes_ready and behaviour.ready_after_s and not podsof.is_ready(pod):
            since = podstatus.started_at(pod)
            left_s = behaviour.ready_after_s - self._elapsed_s(since)
            if left_s <= 0:
                address = pod["status"]["podIP"]
                await self._report(pod, podstatus.compute_running_status(pod, address, self._now(), since=since))
            else:
                waits.append(left_s)
        if not waits:
            return None
        due_s = self._exits_at_s.get(key_of(pod))
        waits += [due_s - self._clock.monotonic()] if due_s is not None else []
        return Result(requeue_after_s=min(waits)) if min(waits) > 0 else None

    def _elapsed_s(self, since: str | None) -> float:
        return 0.0 if since is None else (self._clock.now() - from_rfc3339(since)).total_seconds()

    async def _exit(self, key: Key, pod: Object, behaviour: Behaviour) -> Result:
        owned = [each for uid in _owners(pod) for each in self._pods.by_index(BY_OWNER, uid)]
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
        is_ready = behaviour.becomes_ready and not behaviour.ready_after_s
        status = podstatus.compute_running_status(pod, address, self._now(), becomes_ready=is_ready)
        await self._report(pod, status)

    async def _remove(self, pod: Object) -> Result:
        meta = pod["metadata"]
        if podsof.owner_key(pod, "Job") is not None and not podsof.is_finished(pod):
            # The Job's finalizer holds the pod until the Job has counted how it ended.
            await self._report(pod, podstatus.compute_ended_status(pod, podstatus.KILLED, self._now()))
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
