"""Strategies of PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSIDrivers."""

from federation.apimachinery import quantity as quantities
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, forbidden, immutable, not_supported, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import GenerationStrategy, Strategy
from federation.apiserver.semantics.validation.podvalidation import validate_quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NOT_SOURCE = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)
_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class PersistentVolumeClaimStrategy(Strategy):
    """v1 PersistentVolumeClaim: an update may only increase the requested storage and set the volume."""

    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        defaults.default_claim(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        field, storage = "spec.resources[storage]", value_at(spec, "resources.requests.storage")
        causes = _validate_access_modes(spec.get("accessModes"))
        return causes + ([required(field)] if storage is None else validate_quantity(storage, field))

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        is_bound = value_at(new, "status.phase") == "Bound"
        if _fixed_part(new["spec"], old["spec"], is_bound) != _fixed_part(old["spec"], old["spec"], is_bound):
            causes.append(forbidden("spec", _CLAIM_TEXT))
        elif not causes and _is_below_capacity(new, old):
            causes.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
        return causes


class PersistentVolumeStrategy(Strategy):
    """v1 PersistentVolume."""

    returns_deleted_object = True
    immutable_fields = ("spec.volumeMode",)

    def default(self, obj: Object) -> None:
        defaults.default_volume(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        causes = _validate_access_modes(spec.get("accessModes"))
        storage = value_at(spec, "capacity.storage")
        causes += (
            [required("spec.capacity")] if storage is None else validate_quantity(storage, "spec.capacity[storage]")
        )
        sources = list(_source(spec))
        if not sources:
            causes.append(required("spec", "must specify a volume type"))
        if (driver := spec.get("csi")) is not None:
            causes += [required(f"spec.csi.{field}") for field in ("driver", "volumeHandle") if not driver.get(field)]
        for source in sources[1:]:
            causes.append(forbidden(f"spec.{source}", "may not specify more than 1 volume type"))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = super().validate_update(new, old)
        if _source(new["spec"]) != _source(old["spec"]):
            field = "spec.persistentvolumesource"
            causes.append(forbidden(field, f"{field} is immutable after creation"))
        return causes


class StorageClassStrategy(Strategy):
    """storage.k8s.io/v1 StorageClass."""

    returns_deleted_object = True
    immutable_fields = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")

    def default(self, obj: Object) -> None:
        defaults.default_storage_class(obj)

    def validate(self, obj: Object) -> Causes:
        return [] if obj.get("provisioner") else [required("provisioner")]


class VersionedStorageStrategy(Strategy):
    """storage.k8s.io/v1 CSIStorageCapacity."""

    allow_unconditional_update = False


class ReturnedStorageStrategy(VersionedStorageStrategy):
    """storage.k8s.io/v1 CSINode and VolumeAttachment."""

    returns_deleted_object = True


class CSIDriverStrategy(GenerationStrategy):
    """storage.k8s.io/v1 CSIDriver."""

    initial_generation = 0
    allow_unconditional_update = False
    returns_deleted_object = True
    immutable_fields = ("spec.volumeLifecycleModes",)

    def default(self, obj: Object) -> None:
        defaults.default_driver(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        before, after = value_at(old, "spec.attachRequired"), value_at(new, "spec.attachRequired")
        # The path is kube-apiserver's, which differs from the name of the field.
        return immutable("spec.attachedRequired", after, before) + super().validate_update(new, old)


def _validate_access_modes(modes: object) -> Causes:
    if not isinstance(modes, list) or not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    return [not_supported("spec.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]


def _fixed_part(spec: Object, old: Object, is_bound: bool) -> Object:
    """Return the claim without its mutable fields: an unset volume name; once bound, resources and attributes class."""
    mutable = {"resources", "volumeAttributesClassName"} if is_bound else frozenset()
    fixed = {name: value for name, value in spec.items() if name not in mutable}
    if not old.get("volumeName"):
        fixed.pop("volumeName", None)
    return fixed


def _is_below_capacity(new: Object, old: Object) -> bool:
    """Return True if an update reduces the requested storage to the capacity or below it."""
    path, capacity = "spec.resources.requests.storage", value_at(old, "status.capacity.storage")
    if capacity is None or value_at(new, path) == value_at(old, path):
        return False
    before, wanted, actual = (
        quantities.parse(str(amount)) for amount in (value_at(old, path), value_at(new, path), capacity)
    )
    return wanted < before and not actual < wanted


def _source(spec: Object) -> Object:
    """Return the volume source: the fields of the spec that have no other meaning."""
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCE}
