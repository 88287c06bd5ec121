"""The simulated CronJob controller: creates Jobs at the times of a schedule and removes old ones.

The rules are those of Kubernetes: of several missed times only the newest is caught up, and none after
`startingDeadlineSeconds`; a Job's name comes from its time, so that no time runs twice. The library croniter computes
the times; `@every` counts from the CronJob's creation or its last Job.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from federation.apimachinery import cron
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.conditions import is_true
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.ownerreferences import controller_reference, controller_uids
from federation.apimachinery.resources import CRON_JOBS, JOBS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import BY_OWNER
from federation.simulator.controllers.jobprogress import is_job_finished
from federation.simulator.controllers.memberparts import Member

_DONE = Result()
_TIME_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class Schedule:
    """The times of a CronJob."""

    def __init__(self, text: str, zone: str, created: datetime) -> None:
        self._text, self._zone, self._created = text, ZoneInfo(zone or "UTC"), created
        self._every_s = max(1.0, parse_duration(text.split()[1])) if text.startswith("@every") else 0.0

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after the moment."""
        if self._every_s:
            passed = (moment - self._created).total_seconds() // self._every_s
            return self._created + timedelta(seconds=(passed + 1) * self._every_s)
        return cron.next_time(self._text, moment, self._zone)

    def newest_between(self, earliest: datetime, now: datetime) -> datetime | None:
        """Return the last time after `earliest` and not after `now`, None without one."""
        first = self.next_after(earliest)
        if first > now:
            return None
        if self._every_s:
            return first + timedelta(seconds=(now - first).total_seconds() // self._every_s * self._every_s)
        return max(first, cron.last_time(self._text, now, self._zone))


class CronJobController:
    """Reconciles the CronJobs of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._cron_jobs = member.cache(CRON_JOBS)
        self._jobs = member.cache(JOBS)
        self._clock = member.clock
        self.controller = member.controller("sim-cronjob", self._reconcile)
        self._jobs.add_index(BY_OWNER, controller_uids)
        self._cron_jobs.add_handler(podsof.on_spec_change(self.controller))
        self._jobs.add_handler(self._job_changed)

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        if old and new and is_job_finished(old) == is_job_finished(new):
            return
        if (key := podsof.owner_key(new or old or {}, "CronJob")) is not None:
            self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Result:
        cron_job = self._cron_jobs.get(key.namespace, key.name)
        if cron_job is None:
            return _DONE
        now = self._clock.now()
        jobs = self._jobs.by_index(BY_OWNER, cron_job["metadata"]["uid"])
        status = compute_status(cron_job, jobs)
        result = _DONE
        if not podsof.is_terminating(cron_job):
            await self._remove_history(cron_job, jobs)
            if not cron_job["spec"].get("suspend"):
                created = from_rfc3339(cron_job["metadata"]["creationTimestamp"])
                schedule = Schedule(cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone") or "", created)
                await self._start_due(cron_job, schedule, status, now)
                result = Result(requeue_after_s=(schedule.next_after(now) - now).total_seconds())
        await podsof.write_status(self._client, self._cron_jobs, CRON_JOBS, cron_job, status)
        return result

    async def _start_due(self, cron_job: Object, schedule: Schedule, status: Object, now: datetime) -> None:
        """Create the Job of the newest time that has none, and note it in `status`."""
        spec = cron_job["spec"]
        last = status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
        deadline_s = spec.get("startingDeadlineSeconds")
        due = schedule.newest_between(from_rfc3339(last), now)
        if due is None or (deadline_s is not None and due + timedelta(seconds=deadline_s) < now):
            return
        active = status.get("active") or []
        if active and spec.get("concurrencyPolicy") == "Forbid":
            return
        if spec.get("concurrencyPolicy") == "Replace":
            for each in active:
                await self._delete_job(each["name"], cron_job["metadata"]["namespace"], each["uid"])
            active = []
        job = await self._create_job(cron_job, due)
        if job is None:
            return
        meta = job["metadata"]
        reference = {
            "kind": "Job",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "apiVersion": JOBS.api_version,
            "resourceVersion": meta["resourceVersion"],
        }
        status["active"] = [*active, reference]
        status["lastScheduleTime"] = to_rfc3339(due)

    async def _create_job(self, cron_job: Object, due: datetime) -> Object | None:
        """Create the Job of that time and return it, None when its name belongs to something else."""
        meta, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
        template_meta = template.get("metadata") or {}
        stamp = due.isoformat().replace("+00:00", "Z")
        job: Object = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {
                "name": f"{meta['name']}-{int(due.timestamp()) // 60}",
                "namespace": meta["namespace"],
                **({"labels": template_meta["labels"]} if template_meta.get("labels") else {}),
                "annotations": {**(template_meta.get("annotations") or {}), _TIME_ANNOTATION: stamp},
                "ownerReferences": [controller_reference(cron_job, CRON_JOBS.api_version, CRON_JOBS.kind)],
            },
            "spec": template["spec"],
        }
        try:
            created = await self._client.create(JOBS, job)
        except AlreadyExists:
            found = await self._client.get(JOBS, job["metadata"]["name"], meta["namespace"])
            return found if controller_uids(found) == [meta["uid"]] else None
        await self._jobs.wait_for(created["metadata"]["resourceVersion"])
        return created

    async def _remove_history(self, cron_job: Object, jobs: list[Object]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        spec = cron_job["spec"]
        limits = {
            "Complete": spec.get("successfulJobsHistoryLimit", 3),
            "Failed": spec.get("failedJobsHistoryLimit", 1),
        }
        for type_, limit in limits.items():
            ended = [job for job in jobs if is_true((job.get("status") or {}).get("conditions"), type_)]
            ended.sort(key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"]))
            for job in ended[: max(0, len(ended) - int(limit))]:
                await self._delete_job(job["metadata"]["name"], job["metadata"]["namespace"], job["metadata"]["uid"])

    async def _delete_job(self, name: str, namespace: str, uid: str) -> None:
        try:
            await self._client.delete(JOBS, name, namespace, uid=uid, propagation_policy="Background")
        except NotFound:
            return


def compute_status(cron_job: Mapping[str, Any], jobs: list[Object]) -> Object:
    """Return the status from the Jobs that exist: finished and missing ones are not active."""
    status = dict(cron_job.get("status") or {})
    running = {job["metadata"]["uid"] for job in jobs if not is_job_finished(job)}
    active = [each for each in status.pop("active", None) or () if each["uid"] in running]
    if active:
        status["active"] = active
    times = [job["status"]["completionTime"] for job in jobs if "completionTime" in (job.get("status") or {})]
    if newest := max([*times, status.get("lastSuccessfulTime") or ""], default=""):
        status["lastSuccessfulTime"] = newest
    return status
