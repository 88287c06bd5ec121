"""Strategies of Jobs and CronJobs."""

from collections.abc import Iterable
from typing import ClassVar

from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, immutable, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import workloaddefaults as defaults
from federation.apiserver.semantics.strategies.base import PodOwnerStrategy, StatusFields
from federation.apiserver.semantics.validation.kindwarnings import job_warnings
from federation.apiserver.semantics.validation.workloadvalidation import (
    validate_cron_job,
    validate_job_name,
    validate_job_selector,
    validate_job_spec,
)

_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_FIXED = ("spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy", "spec.successPolicy")
_PLACEMENT = frozenset({"nodeSelector", "tolerations", "schedulingGates"})


class JobStrategy(PodOwnerStrategy):
    """batch/v1 Job: selector and template labels are generated from the uid; the template is immutable."""

    status_always: ClassVar[StatusFields] = {}

    default = staticmethod(defaults.default_job)

    def prepare_create(self, obj: Object) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        uid, name = metadata["uid"], metadata.get("name", "")
        template = spec["template"]["metadata"]
        has_labels = bool(template.get("labels"))
        generated = {"controller-uid": uid, "job-name": name, _CONTROLLER_UID: uid, _JOB_NAME: name}
        labels = template["labels"] = {**generated, **(template.get("labels") or {})}
        if has_labels and not metadata.get("labels"):
            metadata["labels"] = dict(labels)
        selector = spec["selector"] = spec.get("selector") or {}
        selector["matchLabels"] = {_CONTROLLER_UID: uid, **(selector.get("matchLabels") or {})}

    def validate(self, obj: Object) -> Causes:
        return _validate_spec(obj) + validate_job_name(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = _validate_spec(new)
        for path in ("spec.selector", "spec.completionMode", *_FIXED):
            causes += immutable(path, value_at(new, path), value_at(old, path))
        completions = value_at(new, "spec.completions")
        if value_at(new, "spec.completionMode") != "Indexed":
            causes += immutable("spec.completions", completions, value_at(old, "spec.completions"))
        elif completions != value_at(old, "spec.completions") and completions != value_at(new, "spec.parallelism"):
            text = "can only be modified in tandem with spec.parallelism"
            causes.append(invalid("spec.completions", completions, text))
        before, after = old["spec"]["template"], new["spec"]["template"]
        # A queue controller may change the placement of a suspended Job before it starts.
        if value_at(old, "spec.suspend") and not value_at(old, "status.startTime"):
            if _without_placement(before) != _without_placement(after):
                causes.append(invalid("spec.template.spec", after["spec"], "field is immutable"))
            return causes
        return causes + immutable("spec.template", after, before)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            yield from job_warnings(obj["spec"], "spec")
        yield from super().warnings(obj, old)


def _validate_spec(job: Object) -> Causes:
    spec = job.get("spec") or {}
    return validate_job_spec(spec, "spec") + validate_job_selector(spec)


class CronJobStrategy(PodOwnerStrategy):
    """batch/v1 CronJob."""

    names_again = False
    pod_spec = "spec.jobTemplate.spec.template.spec"
    status_always: ClassVar[StatusFields] = {}

    default = staticmethod(defaults.default_cron_job)
    validate = staticmethod(validate_cron_job)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            yield from job_warnings(obj["spec"]["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec")
        yield from super().warnings(obj, old)
        if old is not None and "TZ" in obj["spec"].get("schedule", ""):
            page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
            yield f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"


def _without_placement(template: Object) -> Object:
    """Return a pod template without its scheduling constraints, resources, labels and annotations."""
    spec = {name: value for name, value in template["spec"].items() if name not in _PLACEMENT}
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    spec["affinity"] = affinity
    for part in ("containers", "initContainers"):
        if part in spec:
            spec[part] = [{**container, "resources": {}} for container in spec[part]]
    metadata = template.get("metadata") or {}
    return {"spec": spec, "metadata": {k: v for k, v in metadata.items() if k not in {"labels", "annotations"}}}
