"""Defaults of Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job and CronJob."""

from typing import Any

from federation.apiserver.semantics.defaults.poddefaults import default_template, fill

Fields = dict[str, Any]
_INT32_MAX = 2**31 - 1


def default_deployment(obj: Fields) -> None:
    """Fill a Deployment: one replica, rolling update by 25 %."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.get("strategy")
    if strategy is None:
        strategy = spec["strategy"] = {}
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        if rolling is None:
            rolling = strategy["rollingUpdate"] = {}
        fill(rolling, maxUnavailable="25%", maxSurge="25%")
    default_template(spec.setdefault("template", {}))


def default_replica_set(obj: Fields) -> None:
    """Fill a ReplicaSet."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1)
    default_template(spec.setdefault("template", {}))


def default_replication_controller(obj: Fields) -> None:
    """Fill a ReplicationController; selector and labels default to the labels of its template."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1)
    template = spec.setdefault("template", {})
    default_template(template)
    labels = template["metadata"].get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def default_stateful_set(obj: Fields) -> None:
    """Fill a StatefulSet and its claim templates."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        fill(rolling, partition=0)
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        fill(claim.setdefault("spec", {}), volumeMode="Filesystem")
        fill(claim.setdefault("status", {}), phase="Pending")
    default_template(spec.setdefault("template", {}))


def default_daemon_set(obj: Fields) -> None:
    """Fill a DaemonSet."""
    spec = obj.setdefault("spec", {})
    fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    default_template(spec.setdefault("template", {}))


def default_job(obj: Fields) -> None:
    """Fill a Job."""
    spec = obj.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        fill(spec, completions=1)
    retries = 6 if spec.get("backoffLimitPerIndex") is None else _INT32_MAX
    fill(spec, parallelism=1, backoffLimit=retries, completionMode="NonIndexed", suspend=False, manualSelector=False)
    _default_failure_policy(spec)
    fill(spec, podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    default_template(spec.setdefault("template", {}))


def default_cron_job(obj: Fields) -> None:
    """Fill a CronJob."""
    spec = obj.setdefault("spec", {})
    fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    job_spec = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    _default_failure_policy(job_spec)
    default_template(job_spec.setdefault("template", {}))


def _default_failure_policy(spec: Fields) -> None:
    """Fill the conditions of a Job's failure policy: one without a status is about a condition that is true."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
