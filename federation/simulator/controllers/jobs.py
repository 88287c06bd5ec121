"""The simulated Job controller: creates pods, counts finished ones, ends the Job, deletes it after its time to live.

`jobprogress` decides. Pods of a Job have a finalizer until they are counted, as in Kubernetes, so that no completion is
lost when a pod is deleted. Read `kubelet.py` for how long pods run and when they fail.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.errors import FederationError, NotFound
from federation.apimachinery.resources import JOBS, PODS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import jobprogress
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.indexes import INDEX
from federation.simulator.controllers.jobprogress import FINALIZER, Backoff, JobOutcome, Tally
from federation.simulator.controllers.memberparts import Member

_DONE = Result()
_BY_JOB = "tracked-by-job"


class JobController:
    """Reconciles the Jobs of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._jobs = member.cache(JOBS)
        self._pods = member.cache(PODS)
        self._control = member.pods
        self._clock = member.clock
        self._suffixes = member.suffixes
        self._backoffs: dict[Key, Backoff] = {}
        self.controller = member.controller("sim-job", self._reconcile)
        self._pods.add_index(_BY_JOB, _tracking_job)
        self._jobs.add_handler(podsof.on_spec_change(self.controller))
        self._pods.add_handler(podsof.on_owned_change(self.controller, "Job"))

    async def _reconcile(self, key: Key) -> Result:
        job = self._jobs.get(key.namespace, key.name)
        if job is None or jobprogress.is_job_finished(job):
            self._backoffs.pop(key, None)
            await self._release(self._pods.by_index(_BY_JOB, str(key)))
            return _DONE if job is None else await self._delete_expired(job)
        if job["spec"].get("managedBy", "kubernetes.io/job-controller") != "kubernetes.io/job-controller":
            return _DONE
        now = self._clock.now()
        pods = sorted(self._control.owned(job), key=lambda pod: str(pod["metadata"]["name"]))
        counts = jobprogress.tally(job, pods)
        backoff = self._backoffs.setdefault(key, Backoff())
        backoff.record(counts.new_succeeded, counts.new_failed, now)
        verdict = jobprogress.find_verdict(job, pods, counts, now)
        wait_s, failure = None, None
        if verdict is not None:
            await self._control.delete(counts.active)
        elif not podsof.is_terminating(job):
            try:
                wait_s = await self._manage(job, pods, counts, backoff)
            except FederationError as error:
                failure = error  # as in Kubernetes, the Job has started although its pods are refused
        active: list[Object] = [pod for pod in self._control.owned(job) if podsof.is_active(pod)]
        if verdict is not None:
            active = []  # the informer may not have seen the deletions yet
        scope = counts.scope
        if verdict is None and not active and _is_complete(counts):
            verdict = jobprogress.COMPLETED
        await self._track(job, pods, counts, active, verdict)
        if failure is not None:
            raise failure
        waits = [wait for wait in (wait_s, jobprogress.deadline_left_s(job, scope, now)) if wait is not None]
        return Result(requeue_after_s=max(0.0, min(waits))) if waits and verdict is None else _DONE

    async def _manage(
        self, job: Object, pods: Sequence[Mapping[str, Any]], counts: Tally, backoff: Backoff
    ) -> float | None:
        """Create or delete pods; return the seconds to wait when failures delay a creation."""
        changes = jobprogress.plan_pods(counts, pods)
        if changes.delete:
            surplus = [dict(pod) for pod in changes.delete[: podsof.BURST_MAX]]
            await self._release(surplus)  # first, so that they do not count as failed
            await self._control.delete(surplus)
            return 0.0 if len(changes.delete) > podsof.BURST_MAX else None
        if not changes.create:
            return None
        if (left_s := backoff.left_s(self._clock.now())) > 0:
            return left_s
        new_pods = [self._to_pod(job, index) for index in changes.create[: podsof.BURST_MAX]]
        is_complete = await self._control.create(job, new_pods) and len(changes.create) == len(new_pods)
        return None if is_complete else 0.0

    async def _track(
        self,
        job: Object,
        pods: Sequence[Mapping[str, Any]],
        counts: Tally,
        active: list[Object],
        verdict: JobOutcome | None,
    ) -> None:
        """Write what is known now, release counted pods, then write their counts and the end of the Job."""
        now = self._clock.now()
        status: dict[str, Any] = {"uncountedTerminatedPods": {}, **(job.get("status") or {})}
        self._note_start(status, counts, verdict)
        current = {pod["metadata"]["uid"]: pod for pod in self._control.owned(job)}
        terminating = sum(podsof.is_terminating(p) and not podsof.is_finished(p) for p in current.values())
        status.update(ready=sum(map(podsof.is_ready, active)), terminating=terminating)
        status.pop("active", None)
        if active:
            status["active"] = len(active)
        jobprogress.count_uncounted(status, {uid for uid, pod in current.items() if jobprogress.has_finalizer(pod)})
        released = jobprogress.add_uncounted(status, counts, verdict, pods)
        if verdict is not None and all(c["type"] != verdict.type for c in status.get("conditions", ())):
            condition = jobprogress.to_condition(verdict.type, "True", verdict.reason, verdict.message, now)
            status["conditions"] = [*status.get("conditions", ()), condition]
        await podsof.write_status(self._client, self._jobs, JOBS, job, status)
        await self._release(released)
        current = {pod["metadata"]["uid"]: pod for pod in self._control.owned(job)}
        final = dict(status)
        jobprogress.count_uncounted(final, {uid for uid, pod in current.items() if jobprogress.has_finalizer(pod)})
        terminating = sum(podsof.is_terminating(p) and not podsof.is_finished(p) for p in current.values())
        is_counted = not any(final["uncountedTerminatedPods"].values())
        if verdict is not None and is_counted and not terminating and not final.get("active"):
            final["terminating"] = 0
            last = jobprogress.to_condition(verdict.final_type, "True", verdict.reason, verdict.message, now)
            final["conditions"] = [*final["conditions"], last]
            if verdict.final_type == "Complete":
                final["completionTime"] = last["lastTransitionTime"]
        if final != status and (newest := self._jobs.get(job["metadata"]["namespace"], job["metadata"]["name"])):
            await podsof.write_status(self._client, self._jobs, JOBS, newest, final)

    def _note_start(self, status: dict[str, Any], counts: Tally, verdict: JobOutcome | None) -> None:
        """Set startTime and the condition Suspended, in place."""
        now, is_suspended = self._clock.now(), counts.scope.is_suspended
        if "startTime" not in status and not is_suspended:
            status["startTime"] = to_rfc3339(now)
        if verdict is not None:
            return
        conditions, has_changed = jobprogress.set_suspended(
            status.get("conditions", ()), is_suspended=is_suspended, now=now
        )
        if has_changed:
            status["conditions"] = conditions
            status.pop("startTime", None)
            if not is_suspended:
                status["startTime"] = to_rfc3339(now)

    async def _release(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """Remove the finalizers of counted pods."""
        tracked = [pod for pod in pods if jobprogress.has_finalizer(pod)]
        written = await asyncio.gather(*(self._release_one(pod) for pod in tracked))
        if newest := max((version for version in written if version), key=int, default=""):
            await self._pods.wait_for(newest)

    async def _release_one(self, pod: Mapping[str, Any]) -> str:
        meta = pod["metadata"]
        left = [each for each in meta["finalizers"] if each != FINALIZER]
        try:
            patch = {"metadata": {"uid": meta["uid"], "finalizers": left or None}}
            written = await self._client.patch(PODS, meta["name"], patch, namespace=meta["namespace"])
        except NotFound:
            return ""
        return str(written["metadata"]["resourceVersion"])

    async def _delete_expired(self, job: Object) -> Result:
        """Delete a finished Job `ttlSecondsAfterFinished` after its end."""
        ttl_s = job["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None or podsof.is_terminating(job):
            return _DONE
        ends = [c for c in job["status"]["conditions"] if c["type"] in ("Complete", "Failed") and c["status"] == "True"]
        expires = from_rfc3339(ends[0]["lastTransitionTime"]) + timedelta(seconds=ttl_s)
        left_s = (expires - self._clock.now()).total_seconds()
        if left_s > 0:
            return Result(requeue_after_s=left_s)
        meta = job["metadata"]
        try:
            await self._client.delete(
                JOBS, meta["name"], meta["namespace"], uid=meta["uid"], propagation_policy="Foreground"
            )
        except NotFound:
            return _DONE
        return _DONE

    def _to_pod(self, job: Object, index: int) -> Object:
        name = job["metadata"]["name"]
        prefix = name if index < 0 else f"{name}-{index}"
        pod = podsof.to_pod(job, JOBS, job["spec"]["template"], f"{prefix[:57]}-{self._suffixes.new()}")
        meta = pod["metadata"]
        meta["finalizers"] = [*(each for each in meta.get("finalizers", ()) if each != FINALIZER), FINALIZER]
        if index >= 0:
            meta["annotations"] = {**meta.get("annotations", {}), INDEX: str(index)}
            meta["labels"] = {**meta.get("labels", {}), INDEX: str(index)}
            pod["spec"]["hostname"] = prefix
            for group in ("initContainers", "containers"):
                if group in pod["spec"]:
                    pod["spec"][group] = [_with_index(container) for container in pod["spec"][group]]
        return pod


def _with_index(container: Mapping[str, Any]) -> Object:
    """Return the container with its completion index in the environment."""
    env = list(container.get("env") or ())
    if all(each["name"] != "JOB_COMPLETION_INDEX" for each in env):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
        env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
    return {**container, "env": env}


def _is_complete(counts: Tally) -> bool:
    scope = counts.scope
    return counts.succeeded > 0 if scope.completions is None else counts.succeeded >= scope.completions


def _tracking_job(pod: Object) -> list[str]:
    key = podsof.owner_key(pod, "Job") if jobprogress.has_finalizer(pod) else None
    return [] if key is None else [str(key)]
