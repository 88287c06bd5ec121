"""PersistentVolumes, their claims and classes."""

from federation.api.resources import Object
from federation.registry.defaults import others as defaults
from federation.registry.strategies.base import Strategy, dig
from federation.registry.validation.fields import Causes, forbidden, not_supported, required
from federation.registry.validation.pods import validate_quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class ClaimStrategy(Strategy):
    """v1 PersistentVolumeClaim: after creation only more storage may be asked for, and a volume bound."""

    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        defaults.default_claim(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        causes = _validate_access_modes(spec.get("accessModes"))
        storage = dig(spec, "resources.requests.storage")
        if storage is None:
            causes.append(required("spec.resources[storage]"))
        else:
            causes += validate_quantity(storage, "spec.resources[storage]")
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        if _fixed_part(new["spec"], old["spec"]) != _fixed_part(old["spec"], old["spec"]):
            causes.append(forbidden("spec", _CLAIM_TEXT))
        return causes


class VolumeStrategy(Strategy):
    """v1 PersistentVolume."""

    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        defaults.default_volume(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        causes = _validate_access_modes(spec.get("accessModes"))
        storage = dig(spec, "capacity.storage")
        if storage is None:
            causes.append(required("spec.capacity"))
        else:
            causes += validate_quantity(storage, "spec.capacity[storage]")
        return causes


class StorageClassStrategy(Strategy):
    """storage.k8s.io/v1 StorageClass."""

    _FIXED = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")

    def default(self, obj: Object) -> None:
        defaults.default_storage_class(obj)

    def validate(self, obj: Object) -> Causes:
        return [] if obj.get("provisioner") else [required("provisioner")]

    def validate_update(self, new: Object, old: Object) -> Causes:
        changed = [field for field in self._FIXED if new.get(field) != old.get(field)]
        return self.validate(new) + [forbidden(field, f"updates to {field} are forbidden.") for field in changed]


class OrdinaryStorageStrategy(Strategy):
    """CSIDriver, CSINode and VolumeAttachment: stored for those who use them."""


def _validate_access_modes(modes: object) -> Causes:
    if not isinstance(modes, list) or not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    return [not_supported("spec.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]


def _fixed_part(spec: Object, old: Object) -> Object:
    """Return the claim without what may still change: a first volume name, the class, the amount."""
    fixed = {name: value for name, value in spec.items() if name not in {"resources", "volumeAttributesClassName"}}
    if not old.get("volumeName"):
        fixed.pop("volumeName", None)
    return fixed
