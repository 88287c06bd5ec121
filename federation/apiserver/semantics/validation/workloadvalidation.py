"""Validate workloads: selectors that match their template, replica counts, rollout parameters, schedules."""

import re
import zoneinfo
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.fielderrors import (
    Causes,
    forbidden,
    invalid,
    non_negative,
    not_supported,
    one_of,
    required,
)
from federation.apimachinery.selectors import compile_label_selector
from federation.apiserver.semantics.validation.jobvalidation import validate_job_policies
from federation.apiserver.semantics.validation.networkvalidation import validate_domain_path
from federation.apiserver.semantics.validation.podvalidation import validate_template
from federation.apiserver.semantics.validation.schedulevalidation import schedule_problem
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector
from federation.apiserver.semantics.validation.volumevalidation import validate_claim_spec

Fields = Mapping[str, Any]

_NOT_MATCHING = "`selector` does not match template `labels`"


def validate_deployment(obj: Fields) -> Causes:
    """Validate a Deployment."""
    spec = obj.get("spec") or {}
    causes = _validate_replicas(spec) + _validate_selector_and_template(spec) + _validate_restart_policy(spec)
    strategy = spec.get("strategy") or {}
    at = "spec.strategy"
    kind = strategy.get("type")
    causes += one_of(at, kind, ("Recreate", "RollingUpdate"))
    rolling = strategy.get("rollingUpdate")
    if kind == "Recreate" and rolling is not None:
        causes.append(forbidden(f"{at}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"))
    if kind == "RollingUpdate" and rolling:
        causes += validate_int_or_percent(rolling.get("maxUnavailable"), f"{at}.rollingUpdate.maxUnavailable")
        causes += validate_int_or_percent(rolling.get("maxSurge"), f"{at}.rollingUpdate.maxSurge", percent_max=None)
        if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
            causes.append(
                invalid(
                    f"{at}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"
                )
            )
    causes += non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    causes += non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        causes += non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            causes.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return causes


def validate_replica_set(obj: Fields) -> Causes:
    """Validate a ReplicaSet."""
    spec = obj.get("spec") or {}
    causes = _validate_replicas(spec) + _validate_selector_and_template(spec) + _validate_restart_policy(spec)
    return causes + non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))


def validate_replication_controller(obj: Fields) -> Causes:
    """Validate a ReplicationController, whose selector is a map of labels."""
    spec = obj.get("spec") or {}
    causes = _validate_replicas(spec)
    selector = spec.get("selector") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector:
        causes.append(required("spec.selector"))
    elif any(labels.get(key) != value for key, value in selector.items()):
        causes.append(invalid("spec.template.metadata.labels", labels, _NOT_MATCHING))
    return causes + validate_template(template, "spec.template") + _validate_restart_policy(spec)


def validate_stateful_set(obj: Fields) -> Causes:
    """Validate a StatefulSet without its claims, which its pods may mount."""
    spec = obj.get("spec") or {}
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    causes = _validate_replicas(spec) + _validate_selector_and_template(spec, claims) + _validate_restart_policy(spec)
    management = spec.get("podManagementPolicy")
    if management not in {None, "OrderedReady", "Parallel"}:
        causes.append(invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'"))
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in {None, "OnDelete", "RollingUpdate"}:
        causes.append(invalid("spec.updateStrategy", dict(strategy), "must be 'RollingUpdate' or 'OnDelete'"))
    rolling = strategy.get("rollingUpdate") or {}
    if strategy.get("type") == "OnDelete" and "rollingUpdate" in strategy:
        text = "only allowed for updateStrategy 'RollingUpdate'"
        causes.append(invalid("spec.updateStrategy.rollingUpdate", rolling, text))
    causes += non_negative("spec.updateStrategy.rollingUpdate.partition", rolling.get("partition"))
    return causes + non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))


def validate_claim_templates(obj: Fields) -> Causes:
    """Validate the claims that a new StatefulSet makes for its pods; an update cannot change them."""
    return [
        found
        for index, claim in enumerate((obj.get("spec") or {}).get("volumeClaimTemplates") or ())
        for found in validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    ]


def validate_daemon_set(obj: Fields) -> Causes:
    """Validate a DaemonSet."""
    spec = obj.get("spec") or {}
    causes = _validate_selector_and_template(spec) + _validate_restart_policy(spec)
    strategy = spec.get("updateStrategy") or {}
    causes += one_of("spec.updateStrategy.type", strategy.get("type"), ("OnDelete", "RollingUpdate"))
    rolling = strategy.get("rollingUpdate") or {}
    at = "spec.updateStrategy.rollingUpdate"
    causes += validate_int_or_percent(rolling.get("maxUnavailable"), f"{at}.maxUnavailable")
    causes += validate_int_or_percent(rolling.get("maxSurge"), f"{at}.maxSurge")
    if strategy.get("type") == "RollingUpdate" and rolling:
        causes += _validate_daemons(rolling, at)
    return causes + non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))


def _validate_daemons(rolling: Fields, field: str) -> Causes:
    """Require that either surplus or missing pods of a DaemonSet make room for new ones."""
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    has_surge = surge is not None and not _is_zero(surge)
    if unavailable is not None and not _is_zero(unavailable) and has_surge:
        return [invalid(f"{field}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")]
    if not has_surge and (unavailable is None or _is_zero(unavailable)):
        return [required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")]
    return []


def validate_job_spec(spec: Fields, field: str) -> Causes:
    """Validate the spec of a Job or of the job template of a CronJob."""
    causes: Causes = []
    for name in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        causes += non_negative(f"{field}.{name}", spec.get(name))
    causes += one_of(f"{field}.completionMode", spec.get("completionMode"), ("NonIndexed", "Indexed"))
    causes += validate_job_policies(spec, field)
    if (manager := spec.get("managedBy")) is not None:
        causes += validate_domain_path(manager, f"{field}.managedBy")
    template = spec.get("template") or {}
    causes += validate_template(template, f"{field}.template")
    at, policy = f"{field}.template.spec.restartPolicy", (template.get("spec") or {}).get("restartPolicy") or ""
    if policy in {"", "Always"}:
        causes.append(required(at, 'valid values: "OnFailure", "Never"'))
    elif policy not in {"OnFailure", "Never"}:
        causes.append(not_supported(at, policy, ("Never", "OnFailure")))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        causes.append(invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    return causes


def validate_job_name(obj: Fields) -> Causes:
    """Require names of an Indexed Job's pods that are labels, because each pod has its name as host name."""
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name", "")
    if spec.get("completionMode") != "Indexed" or (spec.get("completions") or 0) <= 0:
        return []
    last = f"{name}-{spec['completions'] - 1}"
    text = f"will not able to create pod with invalid DNS label: {last}"
    return [invalid("metadata.name", name, text)] if any(nameformats.dns1123_label(last)) else []


def validate_job_selector(spec: Fields) -> Causes:
    """Require a selector that matches the labels of the template."""
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector is None:
        return [required("spec.selector"), invalid("spec.template.metadata.labels", labels, _NOT_MATCHING)]
    if causes := validate_label_selector(selector, "spec.selector"):
        return causes
    matches = compile_label_selector(selector, is_validated=True).matches(labels or {})
    return [] if matches else [invalid("spec.template.metadata.labels", labels, _NOT_MATCHING)]


def validate_cron_job(obj: Fields) -> Causes:
    """Validate a CronJob."""
    spec = obj.get("spec") or {}
    causes: Causes = []
    name = obj["metadata"].get("name", "")
    if len(name) > 52:
        causes.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    schedule = spec.get("schedule") or ""
    if not schedule:
        causes.append(required("spec.schedule"))
    elif "TZ" in schedule:
        causes.append(
            invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        )
    elif problem := schedule_problem(schedule):
        causes.append(invalid("spec.schedule", schedule, problem))
    causes += _validate_time_zone(spec.get("timeZone"), "spec.timeZone")
    causes += one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        causes += non_negative(f"spec.{field}", spec.get(field))
    job_spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return causes + validate_job_spec(job_spec, "spec.jobTemplate.spec")


def _validate_replicas(spec: Fields) -> Causes:
    return non_negative("spec.replicas", spec.get("replicas"))


def _validate_selector_and_template(spec: Fields, claims: Iterable[str] = ()) -> Causes:
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None:
        # An absent selector matches nothing.
        causes = [required("spec.selector"), invalid("spec.template.metadata.labels", labels, _NOT_MATCHING)]
    elif causes := validate_label_selector(selector, "spec.selector"):
        causes.append(invalid("spec.selector", selector, "invalid label selector"))
    else:
        causes = _validate_match(selector, labels)
    return causes + validate_template(template, "spec.template", claims=claims)


def _validate_match(selector: Fields, labels: Mapping[str, str]) -> Causes:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", selector, "empty selector is invalid for deployment")]
    expressions = selector.get("matchExpressions")
    if not expressions:
        matches = all(labels.get(key) == value for key, value in selector["matchLabels"].items())
    else:
        try:
            matches = compile_label_selector(selector, is_validated=True).matches(labels)
        except BadRequest as error:
            return [invalid("spec.selector", selector, error.message)]
    return [] if matches else [invalid("spec.template.metadata.labels", labels, _NOT_MATCHING)]


def _validate_restart_policy(spec: Fields) -> Causes:
    pod = (spec.get("template") or {}).get("spec") or {}
    causes: Causes = []
    if pod.get("restartPolicy") in {"OnFailure", "Never"}:
        causes.append(not_supported("spec.template.spec.restartPolicy", pod["restartPolicy"], ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        causes.append(
            forbidden(
                "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"
            )
        )
    return causes


def validate_int_or_percent(value: Any, field: str, *, percent_max: int | None = 100) -> Causes:
    """Validate a count or percentage."""
    if value is None:
        return []
    if isinstance(value, int):
        return non_negative(field, value)
    found = re.fullmatch(r"(\d+)%", str(value))
    if not found:
        return [
            invalid(
                field,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex"
                " used for validation is '[0-9]+%')",
            )
        ]
    if percent_max is not None and int(found[1]) > percent_max:
        return [invalid(field, value, f"must not be greater than {percent_max}%")]
    return []


def _is_zero(value: Any) -> bool:
    return value in {0, "0%"}


def _validate_time_zone(zone: Any, field: str) -> Causes:
    if zone is None:
        return []
    if not zone:
        return [invalid(field, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        return [invalid(field, zone, "timeZone must be an explicit time zone as defined in the tz database")]
    return [] if _is_time_zone(zone) else [invalid(field, zone, f"unknown time zone {zone}")]


@lru_cache(maxsize=128)
def _is_time_zone(name: str) -> bool:
    """Return True if the tz database has the zone or if there is no tz database."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return not zoneinfo.available_timezones()
    return True
