"""Jobs and CronJobs."""

from typing import ClassVar

from federation.api.resources import Object
from federation.registry.defaults import workloads as defaults
from federation.registry.strategies.base import StatusFields, Strategy, dig
from federation.registry.validation.fields import Causes, immutable
from federation.registry.validation.workloads import validate_cron_job, validate_job_spec

_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"


class JobStrategy(Strategy):
    """batch/v1 Job: selector and template labels are made from its uid; the template never changes."""

    status_always: ClassVar[StatusFields] = {}
    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_job(obj)

    def prepare_create(self, obj: Object) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        uid, name = metadata["uid"], metadata.get("name", "")
        labels = spec["template"]["metadata"].setdefault("labels", {})
        labels |= {"controller-uid": uid, "job-name": name, _CONTROLLER_UID: uid, _JOB_NAME: name}
        spec["selector"] = {"matchLabels": {_CONTROLLER_UID: uid}}

    def validate(self, obj: Object) -> Causes:
        return validate_job_spec(obj.get("spec") or {}, "spec")

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        for path in ("spec.selector", "spec.completionMode"):
            causes += immutable(path, dig(new, path), dig(old, path))
        if dig(new, "spec.completionMode") != "Indexed":
            causes += immutable("spec.completions", dig(new, "spec.completions"), dig(old, "spec.completions"))
        # A suspended Job that never started may still get other placement from whoever admits it.
        if not (dig(old, "spec.suspend") and not dig(old, "status.startTime")):
            causes += immutable("spec.template", dig(new, "spec.template"), dig(old, "spec.template"))
        return causes


class CronJobStrategy(Strategy):
    """batch/v1 CronJob."""

    status_always: ClassVar[StatusFields] = {}
    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_cron_job(obj)

    def validate(self, obj: Object) -> Causes:
        return validate_cron_job(obj)
