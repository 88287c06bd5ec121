"""Printers of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and similar workloads."""

from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.printers.table import (
    NONE,
    Printer,
    age,
    columns,
    containers_of,
    human_duration,
    labels_text,
    name_of,
    part,
    selector_text,
    since,
)

_WIDE = "Containers|Images|Selector"


def _deployment(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name_of(obj), ready, *counts, age(obj, now), *_wide(spec)]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(obj), *counts, age(obj, now), *_wide(spec)]


def _replication_controller(obj: Object, now: datetime) -> list[Any]:
    cells = _replica_set({**obj, "spec": {**part(obj, "spec"), "selector": None}}, now)
    return [*cells[:-1], labels_text(part(obj, "spec").get("selector"))]


def _stateful_set(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age(obj, now), *containers_of(spec.get("template"))]


def _daemon_set(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    counts = [
        status.get(field, 0)
        for field in (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        )
    ]
    pod = (spec.get("template") or {}).get("spec") or {}
    return [name_of(obj), *counts, labels_text(pod.get("nodeSelector")), age(obj, now), *_wide(spec)]


def _job(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    succeeded, wanted = status.get("succeeded", 0), spec.get("completions")
    if wanted is not None:
        completions = f"{succeeded}/{wanted}"
    else:
        parallelism = spec.get("parallelism") or 0
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    return [name_of(obj), _job_status(obj), completions, _job_duration(status, now), age(obj, now), *_wide(spec)]


def _job_status(obj: Object) -> str:
    conditions = {
        condition.get("type")
        for condition in part(obj, "status").get("conditions") or ()
        if condition.get("status") == "True"
    }
    for kind in ("Complete", "Failed"):
        if kind in conditions:
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in conditions:
            return kind
    return "Running"


def _job_duration(status: Any, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    finish = from_rfc3339(end) if end else now
    return human_duration((finish - from_rfc3339(start)).total_seconds())


def _cron_job(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    last = since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        last,
        age(obj, now),
        *_wide(job),
    ]


def _revision(obj: Object, now: datetime) -> list[Any]:
    owner = controller_of(obj)
    text = NONE
    if owner:
        group, _, _ = owner["apiVersion"].rpartition("/")
        kind = owner["kind"].lower()
        text = f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return [name_of(obj), text, obj.get("revision", 0), age(obj, now)]


def _pod_template(obj: Object, now: datetime) -> list[Any]:
    del now
    template = part(obj, "template")
    return [name_of(obj), *containers_of(template), labels_text((template.get("metadata") or {}).get("labels"))]


def _wide(spec: Any) -> list[str]:
    return [*containers_of(spec.get("template")), selector_text(spec.get("selector"))]


PRINTERS = {
    ("apps", "deployments"): Printer(columns("Name|Ready|Up-to-date|Available|Age", _WIDE), _deployment),
    ("apps", "replicasets"): Printer(
        columns("Name|Desired:integer|Current:integer|Ready:integer|Age", _WIDE), _replica_set
    ),
    ("", "replicationcontrollers"): Printer(
        columns("Name|Desired:integer|Current:integer|Ready:integer|Age", _WIDE), _replication_controller
    ),
    ("apps", "statefulsets"): Printer(columns("Name|Ready|Age", "Containers|Images"), _stateful_set),
    ("apps", "daemonsets"): Printer(
        columns(
            "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age",
            _WIDE,
        ),
        _daemon_set,
    ),
    ("batch", "jobs"): Printer(columns("Name|Status|Completions|Duration|Age", _WIDE), _job),
    ("batch", "cronjobs"): Printer(
        columns("Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age", _WIDE), _cron_job
    ),
    ("", "podtemplates"): Printer(columns("Name|Containers|Images|Pod Labels"), _pod_template),
    ("apps", "controllerrevisions"): Printer(columns("Name|Controller|Revision|Age"), _revision),
}
