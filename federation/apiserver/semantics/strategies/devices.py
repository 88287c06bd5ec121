"""Strategies of resource.k8s.io: what drivers offer (ResourceSlice), classes of devices, and claims to them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, ClassVar

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.fielderrors import Causes, immutable
from federation.apimachinery.objectmeta import validate_labels
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import USER_METADATA, GenerationStrategy, StatusFields, Strategy
from federation.apiserver.semantics.validation import devicevalidation as validation
from federation.apiserver.semantics.validation.resourceslicevalidation import validate_slice

_LIST_VALUES = ("bools", "ints", "strings", "versions")
"""Attribute values behind a feature gate that is off."""


class DeviceClassStrategy(GenerationStrategy):
    """resource.k8s.io/v1 DeviceClass."""

    names_again = False

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    validate = staticmethod(validation.validate_device_class)


class ResourceClaimStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaim: the spec is immutable; a scheduler writes the allocation into the status."""

    status_always: ClassVar[StatusFields] = {}
    status_resets = USER_METADATA

    def default(self, obj: Object) -> None:
        _default_claim(obj.setdefault("spec", {}))

    def prepare_status_update(self, new: Object, old: Object) -> None:
        status = new.get("status") or {}
        removed = set(validation.allocated_devices(old.get("status") or {}))
        removed -= set(validation.allocated_devices(status))
        if not removed or not status.get("devices"):
            return
        # A driver that does not know about a deallocation has left the status of its devices.
        kept = [device for device in status["devices"] if validation.identity(device) not in removed]
        status.pop("devices")
        if kept:
            status["devices"] = kept

    def validate(self, obj: Object) -> Causes:
        return validation.validate_claim(obj.get("spec") or {}, "spec")

    def validate_update(self, new: Object, old: Object) -> Causes:
        return immutable("spec", new.get("spec"), old.get("spec"))

    validate_status_update = staticmethod(validation.validate_claim_status)


class ResourceClaimTemplateStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaimTemplate: immutable."""

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("metadata", {})
        _default_claim(spec.setdefault("spec", {}))

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        causes = validate_labels((spec.get("metadata") or {}).get("labels"), "spec.metadata.labels")
        return causes + validation.validate_claim(spec.get("spec") or {}, "spec.spec")

    def validate_update(self, new: Object, old: Object) -> Causes:
        return immutable("spec", new.get("spec"), old.get("spec"))


class ResourceSliceStrategy(GenerationStrategy):
    """resource.k8s.io/v1 ResourceSlice."""

    names_again = False

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        del old
        for device in _devices(new):
            for taint in device.get("taints") or ():
                if not taint.get("timeAdded"):
                    taint["timeAdded"] = to_rfc3339(now)

    def prepare_create(self, obj: Object) -> None:
        for device in _devices(obj):
            for attribute in (device.get("attributes") or {}).values():
                for name in _LIST_VALUES:
                    attribute.pop(name, None)

    def prepare_update(self, new: Object, old: Object) -> None:
        del old
        self.prepare_create(new)

    validate = staticmethod(validate_slice)
    validate_update = staticmethod(validate_slice)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        driver = (obj.get("spec") or {}).get("driver") or ""
        if driver == driver.lower():
            return []
        return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _devices(obj: Object) -> Iterator[dict[str, Any]]:
    yield from (obj.get("spec") or {}).get("devices") or ()


def _default_claim(spec: dict[str, Any]) -> None:
    for request in (spec.setdefault("devices", {})).get("requests") or ():
        exactly = request.get("exactly")
        for part in ([exactly] if exactly is not None else []) + list(request.get("firstAvailable") or ()):
            part["allocationMode"] = part.get("allocationMode") or "ExactCount"
            if part["allocationMode"] == "ExactCount":
                part["count"] = part.get("count") or 1
            for toleration in part.get("tolerations") or ():
                toleration["operator"] = toleration.get("operator") or "Equal"
