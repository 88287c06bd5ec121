"""Strategies of Pods and PodTemplates."""

from collections.abc import Iterable

from federation.apimachinery.fielderrors import Causes, forbidden, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import poddefaults as defaults
from federation.apiserver.semantics.strategies import podparts
from federation.apiserver.semantics.strategies.base import GenerationStrategy, PodOwnerStrategy
from federation.apiserver.semantics.strategies.podlabelkeys import merge_label_keys, validate_merged_keys
from federation.apiserver.semantics.strategies.podparts import qos_class
from federation.apiserver.semantics.strategies.podupdates import validate_changes
from federation.apiserver.semantics.validation.kindwarnings import pod_name_warnings
from federation.apiserver.semantics.validation.podannotations import (
    containers_of,
    validate_annotation_changes,
    validate_matching_profiles,
    validate_pod_annotations,
)
from federation.apiserver.semantics.validation.podvalidation import validate_pod_spec, validate_template
from federation.apiserver.semantics.validation.podwarnings import pod_warnings


class PodStrategy(GenerationStrategy):
    """v1 Pod: its spec is almost immutable, and deletion has a grace period once it is bound to a node."""

    pod_spec = "spec"
    returns_deleted_object = True

    default = staticmethod(defaults.default_pod)

    def prepare_create(self, obj: Object) -> None:
        merge_label_keys(obj)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def validate(self, obj: Object) -> Causes:
        return validate_new_pod(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        after, before = (obj["metadata"].get("annotations") or {} for obj in (new, old))
        causes: Causes = []
        if after != before:
            causes += validate_annotation_changes(after, before, "metadata.annotations")
            causes += validate_pod_annotations(after, new["spec"], "metadata.annotations")
        if new["spec"] == old["spec"]:
            return causes
        return causes + validate_pod_spec(new["spec"], "spec") + validate_changes(new["spec"], old["spec"])

    prepare_part = staticmethod(podparts.keep_part)

    def validate_part(self, part: str, new: Object, old: Object) -> Causes:
        return podparts.validate_part(part, new, old, lambda obj: validate_pod_spec(obj["spec"], "spec"))

    def grace_period_s(self, obj: Object, wanted: int | None) -> int:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if wanted is None or wanted < 0:
            wanted = int(spec.get("terminationGracePeriodSeconds", 30))
        # No kubelet has to stop a pod that is not bound to a node or that has finished.
        if not spec.get("nodeName") or status.get("phase") in {"Failed", "Succeeded"}:
            return 0
        return wanted

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        if old is None:  # as in kube-apiserver, updates of pods are too frequent
            yield from pod_name_warnings(obj["metadata"]["name"], is_pod=True)
            yield from pod_warnings(obj, "")


def validate_new_pod(pod: Object) -> Causes:
    """Validate a pod, with what may change later or comes from others."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations") or {}
    causes = validate_pod_annotations(annotations, spec, "metadata.annotations") if annotations else []
    causes += validate_pod_spec(spec, "spec")
    causes += validate_matching_profiles(annotations, spec, "spec")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        causes.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if spec.get("ephemeralContainers"):
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    causes += [
        invalid(f"spec.{at}.image", container["image"], "must not have leading or trailing whitespace")
        for at, container in containers_of(spec)
        if container.get("image") and container["image"] != container["image"].strip()
    ]
    return causes + validate_merged_keys(pod)


class PodTemplateStrategy(PodOwnerStrategy):
    """v1 PodTemplate."""

    names_again = False
    pod_spec = "template.spec"
    names_pods = False

    def default(self, obj: Object) -> None:
        defaults.default_template(obj.setdefault("template", {}))

    def validate(self, obj: Object) -> Causes:
        return validate_template(obj["template"], "template")
