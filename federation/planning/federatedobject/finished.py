"""Objects that run to completion: when one has finished, the evidence of it, and when its time to live ends. Pure.

A finished object may be gone from its member: a controller there removes it after its time to live, garbage collection
removes old pods, or an administrator cleans up. To create it again would run it again. So sync keeps evidence of each
cluster's end in `status.clusters[].finished` of the federated object. It belongs to one run: another source of the name
has another uid. A changed spec is another run for the kinds whose controllers may start again; Kubernetes never runs a
finished Job or Pod again (docs/decisions/0087-what-has-finished-stays-finished.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.placements import effective_placement

STATUS_BYTES_MAX = 1024
"""The largest status, in bytes of JSON, that is kept of one cluster: the federated object has those of all clusters."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """How the objects of a kind finish: by a condition of a type, or by a value of the status.

    `ttl` is the path of the seconds after which the kind's own controller removes a finished object.
    """

    succeeded: frozenset[str]
    failed: frozenset[str]
    value: dotpaths.Path = ()
    """The path of the value; () for conditions."""
    ttl: dotpaths.Path = ()


def _by_condition(succeeded: str, failed: str, ttl: str = "") -> _Rule:
    return _Rule(frozenset({succeeded}), frozenset({failed}), ttl=dotpaths.split(ttl))


def _by_value(path: str, succeeded: str, failed: str, ttl: str = "") -> _Rule:
    return _Rule(frozenset(succeeded.split()), frozenset(failed.split()), dotpaths.split(path), dotpaths.split(ttl))


_TTL = "spec.ttlSecondsAfterFinished"
_TRAINING = _by_condition("Succeeded", "Failed", "spec.runPolicy.ttlSecondsAfterFinished")
_TEKTON = _by_condition("Succeeded", "")
_RULES: Mapping[tuple[str, str], _Rule] = {
    ("", "Pod"): _by_value("status.phase", "Succeeded", "Failed"),
    ("batch", "Job"): _by_condition("Complete", "Failed", _TTL),
    ("apps.kruise.io", "BroadcastJob"): _by_condition(
        "Complete", "Failed", "spec.completionPolicy.ttlSecondsAfterFinished"
    ),
    ("argoproj.io", "Workflow"): _by_value("status.phase", "Succeeded", "Failed Error"),
    ("batch.volcano.sh", "Job"): _by_value("status.state.phase", "Completed", "Failed Terminated", _TTL),
    ("jobset.x-k8s.io", "JobSet"): _by_condition("Completed", "Failed", _TTL),
    ("kubeflow.org", "JAXJob"): _TRAINING,
    ("kubeflow.org", "MPIJob"): _TRAINING,
    ("kubeflow.org", "PaddleJob"): _TRAINING,
    ("kubeflow.org", "PyTorchJob"): _TRAINING,
    ("kubeflow.org", "TFJob"): _TRAINING,
    ("kubeflow.org", "XGBoostJob"): _TRAINING,
    # The time to live of a RayJob is that of its cluster.
    ("ray.io", "RayJob"): _by_value("status.jobDeploymentStatus", "Complete", "Failed"),
    ("sparkoperator.k8s.io", "SparkApplication"): _by_value(
        "status.applicationState.state", "COMPLETED", "FAILED", "spec.timeToLiveSeconds"
    ),
    ("tekton.dev", "CustomRun"): _TEKTON,
    ("tekton.dev", "PipelineRun"): _TEKTON,
    ("tekton.dev", "TaskRun"): _TEKTON,
    ("trainer.kubeflow.org", "TrainJob"): _by_condition("Complete", "Failed"),
}
_SUCCEEDED = frozenset(("AllJobsCompleted", "Completed", "Succeeded"))
_FAILED = frozenset(
    (
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "Failed",
        "FailedIndexes",
        "FailedJobs",
        "MaxFailedIndexesExceeded",
        "PodFailurePolicy",
    )
)
"""Reasons of the events in which controllers tell the end of an object."""
_TTL_S_MAX = 2**31 - 1
_RUN_ONCE = frozenset({("", "Pod"), ("batch", "Job")})
"""The kinds that never run again, whatever of their spec changes."""


def runs_to_completion(group: str, kind: str) -> bool:
    """Return whether objects of the kind finish."""
    return (group, kind) in _RULES


def may_finish(template: Mapping[str, Any]) -> bool:
    """Return whether the object of a template runs to completion; a Pod that always restarts does not."""
    kind = kind_of(template)
    policy = (template.get("spec") or {}).get("restartPolicy") if kind == ("", "Pod") else "Never"
    return kind in _RULES and policy in ("Never", "OnFailure")


def kind_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return the group and kind of a whole object."""
    return str(obj.get("apiVersion") or "").rpartition("/")[0], str(obj.get("kind") or "")


def has_succeeded(key: tuple[str, str], obj: Mapping[str, Any]) -> bool | None:
    """Return whether an object of the kind (group and kind) has succeeded or failed, None if it has not finished."""
    rule = _RULES.get(key)
    status = obj.get("status")
    if rule is None or not isinstance(status, Mapping):
        return None
    if rule.value:
        value = dotpaths.get(obj, rule.value)
        if not isinstance(value, str):
            return None
        return True if value in rule.succeeded else False if value in rule.failed else None
    found = status.get("conditions")
    present = [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
    if any(conditions.is_true(present, type_) for type_ in rule.succeeded):
        return True
    if rule is _TEKTON and (conditions.find(present, "Succeeded") or {}).get("status") == "False":
        return False
    return False if any(conditions.is_true(present, type_) for type_ in rule.failed) else None


def is_finished(key: tuple[str, str], obj: Mapping[str, Any] | None) -> bool:
    """Return whether the object of the kind (group and kind) has finished, with success or not."""
    return obj is not None and has_succeeded(key, obj) is not None


def run_of(federated: Mapping[str, Any]) -> str:
    """Return what tells one run of a federated object from another."""
    template, owner = federated["spec"]["template"], controller_of(federated)
    uid = str((owner or {}).get("uid") or "")
    if again := (federated["metadata"].get("annotations") or {}).get(names.RUN_AGAIN):
        uid = f"{uid}/{blake2b(str(again).encode(), digest_size=8).hexdigest()}"
    if uid and kind_of(template) in _RUN_ONCE:
        return uid
    content = {key: value for key, value in template.items() if key not in ("metadata", "status")}
    digest = blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
    return f"{uid}/{digest}"


def started(run: str, live: Mapping[str, Any]) -> Object:
    """Return the record that this object was there in a run."""
    return {"run": run, "uid": str(live["metadata"].get("uid", ""))}


def started_by_cluster(federated: Mapping[str, Any], run: str) -> dict[str, Object]:
    """Return the published record of the object in this run by cluster; {} for the run "", of kinds that do not end."""
    entries = (federated.get("status") or {}).get("clusters") or () if run else ()
    found = {str(entry["cluster"]): entry["started"] for entry in entries if entry.get("started")}
    return {cluster: each for cluster, each in found.items() if each.get("run") == run}


def end_told(kind: str, reason: str) -> bool | None:
    """Return whether an event with this reason tells that an object of the kind has succeeded or failed, else None."""
    if reason in _SUCCEEDED or reason in (f"{kind}Succeeded", f"{kind}Completed"):
        return True
    return False if reason in _FAILED or reason in (f"{kind}Failed", f"{kind}TimedOut", f"{kind}Timeout") else None


def evidence_of_event(federated: Mapping[str, Any], *, succeeded: bool, time: str) -> Object:
    """Return the evidence that an event of a member tells: its object, and so its last status, is gone."""
    template = federated["spec"]["template"]
    rule = _RULES[kind_of(template)]
    value = "Failed" if not succeeded and "Failed" in rule.failed else min(rule.succeeded if succeeded else rule.failed)
    status: Any = value
    if rule.value:
        for part in reversed(rule.value[1:]):
            status = {part: status}
    else:
        type_, is_true = value or "Succeeded", "True" if value else "False"  # Tekton's failure is no success
        status = {"conditions": [{"type": type_, "status": is_true, "lastTransitionTime": time}]}
    if succeeded and kind_of(template) == ("batch", "Job"):
        status["succeeded"] = (template.get("spec") or {}).get("completions") or 1
    return {"run": run_of(federated), "succeeded": succeeded, "time": time, "templateHash": "", "status": status}


def evidence(federated: Mapping[str, Any], live: Mapping[str, Any], now: datetime) -> Object:
    """Return the evidence that a member object of the federated object has finished."""
    annotations = live["metadata"].get("annotations") or {}
    return {
        "run": run_of(federated),
        "succeeded": bool(has_succeeded(kind_of(federated["spec"]["template"]), live)),
        "time": to_rfc3339(now),
        "templateHash": str(annotations.get(names.TEMPLATE_HASH) or ""),
        "status": last_status(live.get("status") or {}),
    }


def last_status(status: Mapping[str, Any]) -> Object:
    """Return the fields of a final status that a merge needs, as many as `STATUS_BYTES_MAX` has room for."""
    kept: Object = {}
    left = STATUS_BYTES_MAX
    found = {name: value for name, value in status.items() if not isinstance(value, list | Mapping)}
    if isinstance(entries := status.get("conditions"), list):
        found["conditions"] = [
            {key: entry[key] for key in ("type", "status", "reason", "lastTransitionTime") if key in entry}
            for entry in entries
            if isinstance(entry, Mapping)
        ]
    # Most of a custom kind's nested fields are details; the state of the job is not.
    found |= {name: status[name] for name in ("state", "applicationState") if isinstance(status.get(name), Mapping)}
    for name, value in sorted(found.items(), key=lambda item: (item[0] != "conditions", item[0])):
        size = len(orjson.dumps({name: value}))
        if size <= left:
            kept[name], left = value, left - size
    return kept


def evidence_by_cluster(federated: Mapping[str, Any]) -> dict[str, Object]:
    """Return the published evidence of the current run by cluster."""
    template = (federated.get("spec") or {}).get("template") or {}
    if kind_of(template) not in _RULES:
        return {}
    entries = (federated.get("status") or {}).get("clusters") or ()
    found = {str(entry["cluster"]): entry["finished"] for entry in entries if entry.get("finished")}
    run = run_of(federated) if found else ""
    return {cluster: each for cluster, each in found.items() if each.get("run") == run}


def has_finished_everywhere(federated: Mapping[str, Any]) -> bool:
    """Return whether the object has finished in every cluster of its placement, and is placed."""
    found = evidence_by_cluster(federated)
    return bool(found) and bool(placed := effective_placement(federated)) and placed <= found.keys()


def shows_end(source: Mapping[str, Any]) -> bool:
    """Return whether the source's own status may be deleted: that of a Job or Pod has to show its end."""
    kind = kind_of(source)
    return kind not in _RUN_ONCE or is_finished(kind, source)


def expires_at(federated: Mapping[str, Any], source: Mapping[str, Any] | None = None) -> datetime | None:
    """Return when the time to live of a source ends, None without one, or while a cluster has not finished.

    It is the `source`'s, or the template's if that is not given, and begins with the end in the last cluster.
    """
    template, placed = federated["spec"]["template"], effective_placement(federated)
    rule, found = _RULES.get(kind_of(template)), evidence_by_cluster(federated)
    if rule is None or not placed or not placed <= found.keys():
        return None
    ended = [found[cluster] for cluster in placed]
    obj = template if source is None else source
    if kind_of(template) == ("argoproj.io", "Workflow"):
        ttl_s = _workflow_ttl_s(obj, is_success=all(each["succeeded"] for each in ended))
    else:
        ttl_s = dotpaths.get(obj, rule.ttl) if rule.ttl else None
    if type(ttl_s) is not int or not 0 <= ttl_s <= _TTL_S_MAX:
        return None
    return max(from_rfc3339(each["time"]) for each in ended) + timedelta(seconds=ttl_s)


def _workflow_ttl_s(workflow: Mapping[str, Any], *, is_success: bool) -> Any:
    """Return the seconds of Argo's `ttlStrategy`: those for its outcome come before those for any."""
    strategy = (workflow.get("spec") or {}).get("ttlStrategy")
    if not isinstance(strategy, Mapping):
        return None
    by_outcome = strategy.get("secondsAfterSuccess" if is_success else "secondsAfterFailure")
    return strategy.get("secondsAfterCompletion") if by_outcome is None else by_outcome
