"""Strategies of PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSIDrivers."""

from collections.abc import Iterable

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import (
    Causes,
    forbidden,
    immutable,
    invalid,
    not_supported,
    one_of,
    problems_of,
    required,
)
from federation.apimachinery.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import USER_METADATA, GenerationStrategy, Strategy
from federation.apiserver.semantics.validation.fieldrules import (
    Rule,
    has_format,
    has_unique,
    is_between,
    is_one_of,
    is_present,
)
from federation.apiserver.semantics.validation.kindwarnings import (
    driver_warnings,
    storage_capacity_warnings,
    storage_class_warnings,
    volume_claim_warnings,
    volume_warnings,
)
from federation.apiserver.semantics.validation.quantityvalidation import validate_positive_quantity
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector, validate_node_selector
from federation.apiserver.semantics.validation.storagevalidation import (
    has_attached_source,
    has_lifecycle_modes,
    has_topologies,
    has_topology_keys,
)
from federation.apiserver.semantics.validation.volumevalidation import (
    validate_access_modes,
    validate_claim_spec,
    validate_driver_name,
    validate_host_path,
)

_CHOICES = {
    "persistentVolumeReclaimPolicy": ("Delete", "Recycle", "Retain"),
    "volumeMode": ("Block", "Filesystem"),
}
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
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class PersistentVolumeClaimStrategy(Strategy):
    """v1 PersistentVolumeClaim: an update may only increase the requested storage and set the volume."""

    returns_deleted_object = True
    initial_finalizers = (CLAIM_PROTECTION,)

    default = staticmethod(defaults.default_claim)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        is_bound = value_at(new, "status.phase") == "Bound"
        if _fixed_part(new, old, is_bound) != _fixed_part(old, old, is_bound):
            causes.append(forbidden("spec", _CLAIM_TEXT))
        elif not causes and _is_below_capacity(new, old):
            causes.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
        return causes + immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return volume_claim_warnings(obj)


class PersistentVolumeStrategy(Strategy):
    """v1 PersistentVolume."""

    returns_deleted_object = True
    immutable_fields = ("spec.volumeMode",)
    initial_finalizers = (VOLUME_PROTECTION,)

    default = staticmethod(defaults.default_volume)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        causes = validate_access_modes(spec.get("accessModes") or (), "spec.accessModes")
        causes += _validate_capacity(spec.get("capacity") or {})
        for field, supported in _CHOICES.items():
            causes += one_of(f"spec.{field}", spec.get(field), supported)
        if (affinity := spec.get("nodeAffinity")) is not None:
            causes += _validate_node_affinity(affinity, "spec.nodeAffinity.required")
        for field in ("storageClassName", "volumeAttributesClassName"):
            if class_name := spec.get(field):
                causes += problems_of(f"spec.{field}", class_name, nameformats.dns1123_subdomain(class_name))
        if (host := spec.get("hostPath")) is not None:
            causes += validate_host_path(host, "spec.hostPath")
        sources = list(_source(spec))
        if not sources:
            causes.append(required("spec", "must specify a volume type"))
        if (driver := spec.get("csi")) is not None:
            causes += validate_driver_name(driver.get("driver") or "", "spec.csi.driver")
            causes += [] if driver.get("volumeHandle") else [required("spec.csi.volumeHandle")]
        for source in sources[1:]:
            causes.append(forbidden(f"spec.{source}", "may not specify more than 1 volume type"))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = super().validate_update(new, old)
        before = value_at(old, "spec.nodeAffinity")
        if before and value_at(new, "spec.nodeAffinity") != before:
            text = "field is immutable, except for updating from beta label to GA"
            causes.append(invalid("nodeAffinity", value_at(new, "spec.nodeAffinity"), text))
        if _source(new["spec"]) != _source(old["spec"]):
            field = "spec.persistentvolumesource"
            causes.append(forbidden(field, f"{field} is immutable after creation"))
        return causes

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return volume_warnings(obj)


class StorageClassStrategy(Strategy):
    """storage.k8s.io/v1 StorageClass."""

    returns_deleted_object = True
    immutable_fields = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    rules = (
        Rule("provisioner", has_format(lambda name: nameformats.qualified_name(name.lower()))),
        Rule("reclaimPolicy", is_one_of("Delete", "Retain")),
        Rule("volumeBindingMode", is_one_of("Immediate", "WaitForFirstConsumer")),
        Rule("allowedTopologies", has_topologies),
    )

    default = staticmethod(defaults.default_storage_class)

    def validate(self, obj: Object) -> Causes:
        return [] if obj.get("provisioner") else [required("provisioner")]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return storage_class_warnings(obj)


class ReturnedStorageStrategy(Strategy):
    """The common part of CSINode and VolumeAttachment."""

    allow_unconditional_update = False
    status_resets = USER_METADATA
    returns_deleted_object = True


class CSINodeStrategy(ReturnedStorageStrategy):
    """storage.k8s.io/v1 CSINode."""

    rules = (
        Rule("spec.drivers[].name", is_present),
        Rule("spec.drivers[].name", has_format(nameformats.dns1123_subdomain)),
        Rule("spec.drivers", has_unique("name")),
        Rule("spec.drivers[].nodeID", is_present),
        Rule("spec.drivers[]", has_topology_keys),
    )


class VolumeAttachmentStrategy(ReturnedStorageStrategy):
    """storage.k8s.io/v1 VolumeAttachment."""

    rules = (
        Rule("spec.attacher", is_present),
        Rule("spec.attacher", has_format(nameformats.dns1123_subdomain)),
        Rule("spec.source", has_attached_source),
        Rule("spec.nodeName", has_format(nameformats.dns1123_subdomain, may_be_empty=False)),
    )


class CSIStorageCapacityStrategy(Strategy):
    """storage.k8s.io/v1 CSIStorageCapacity."""

    allow_unconditional_update = False
    rules = (
        Rule("storageClassName", has_format(nameformats.dns1123_subdomain, may_be_empty=False)),
        Rule("nodeTopology", lambda value, field: validate_label_selector(value or {}, field)),
    )

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return storage_capacity_warnings(obj)


class CSIDriverStrategy(GenerationStrategy):
    """storage.k8s.io/v1 CSIDriver."""

    initial_generation = 0
    allow_unconditional_update = False
    returns_deleted_object = True
    immutable_fields = ("spec.volumeLifecycleModes",)
    names_again = False
    rules = (
        Rule("spec.fsGroupPolicy", is_one_of("File", "None", "ReadWriteOnceWithFSType")),
        Rule("spec.volumeLifecycleModes", has_lifecycle_modes),
        Rule("spec.tokenRequests", has_unique("audience")),
        Rule(
            "spec.tokenRequests[].expirationSeconds",
            is_between(
                600,
                1 << 32,
                "may not specify a duration less than 10 minutes",
                "may not specify a duration larger than 2^32 seconds",
            ),
        ),
    )

    default = staticmethod(defaults.default_driver)

    def validate_update(self, new: Object, old: Object) -> Causes:
        before, after = value_at(old, "spec.attachRequired"), value_at(new, "spec.attachRequired")
        # The path is kube-apiserver's, which differs from the name of the field.
        return immutable("spec.attachedRequired", after, before) + super().validate_update(new, old)

    warnings = staticmethod(driver_warnings)


def _validate_capacity(capacity: Object) -> Causes:
    field = "spec.capacity"
    causes = [] if capacity else [required(field)]
    if "storage" not in capacity or len(capacity) > 1:
        causes.append(not_supported(field, capacity, ("storage",)))
    return causes + [
        found for name, amount in capacity.items() for found in validate_positive_quantity(amount, f"{field}[{name}]")
    ]


def _validate_node_affinity(affinity: Object, field: str) -> Causes:
    selector = affinity.get("required")
    if selector is None:
        return [required(field, "must specify required node constraints")]
    return validate_node_selector(selector, field)


def _fixed_part(claim: Object, old: Object, is_bound: bool) -> Object:
    """Return the spec without its mutable fields: an unset volume or class; once bound, resources and attributes class.

    A claim without a class may get one later, also by a controller when a default class appears.
    """
    before = old["spec"]
    mutable = {"resources", "volumeAttributesClassName"} if is_bound else set()
    if not before.get("volumeName"):
        mutable.add("volumeName")
    annotated = (old["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    if before.get("storageClassName") is None and annotated in {None, claim["spec"].get("storageClassName")}:
        mutable.add("storageClassName")
    return {name: value for name, value in claim["spec"].items() if name not in mutable}


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
