"""Validation of object metadata on create and update.

Follows ValidateObjectMeta and ValidateObjectMetaUpdate of k8s.io/apimachinery. Results of label checks are cached,
because most objects share the same few labels.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, required, too_long
from federation.apimachinery.textcache import cache_short

ANNOTATIONS_BYTES_MAX = 256 * 1024
NameRule = Callable[[str], list[str]]


def validate_metadata(metadata: Mapping[str, Any], *, namespaced: bool, name_rule: NameRule) -> Causes:
    """Check names, labels, annotations, owner references and finalizers of a new object."""
    causes: Causes = []
    name, prefix = metadata.get("name", ""), metadata.get("generateName")
    if prefix:
        # A trailing hyphen is allowed: the name continues after it.
        whole = f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        causes += [invalid("metadata.generateName", prefix, text) for text in name_rule(whole)]
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += [invalid("metadata.name", name, text) for text in name_rule(name)]
    if namespaced and not metadata.get("namespace"):
        causes.append(required("metadata.namespace"))
    return causes + _validate_mutable(metadata)


def validate_metadata_update(new: Mapping[str, Any], old: Mapping[str, Any]) -> Causes:
    """Check an update of metadata; `new` includes the fields that the server sets."""
    causes: Causes = []
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        if new.get(field) != old.get(field):
            causes.append(invalid(f"metadata.{field}", new.get(field), "field is immutable"))
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            causes.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers"
                    f" []string{{{listed}}}",
                )
            )
    return causes + _validate_mutable(new, old)


def validate_labels(labels: Mapping[str, Any] | None, field: str) -> Causes:
    """Check the keys and values of labels."""
    if not labels:
        return []
    causes: Causes = []
    for key, value in labels.items():
        if problems := _key_problems(key):
            causes += [invalid(field, key, problem) for problem in problems]
        if problems := _value_problems(value):
            causes += [invalid(field, value, problem) for problem in problems]
    return causes


def _validate_mutable(metadata: Mapping[str, Any], old: Mapping[str, Any] = MappingProxyType({})) -> Causes:
    """Check what an update may change, in as far as it differs from the stored state."""
    causes: Causes = []
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if labels and labels != old.get("labels"):
        causes += validate_labels(labels, "metadata.labels")
    if annotations and annotations != old.get("annotations"):
        size = 0
        for key, value in annotations.items():
            if problems := _key_problems(key.lower()):
                causes += [invalid("metadata.annotations", key, problem) for problem in problems]
            size += len(key) + len(value)
        if size > ANNOTATIONS_BYTES_MAX:
            causes.append(too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX))
    if owners := metadata.get("ownerReferences"):
        causes += _validate_owner_references(owners)
    for finalizer in metadata.get("finalizers") or ():
        causes += [invalid("metadata.finalizers", finalizer, problem) for problem in _key_problems(finalizer)]
    return causes


def _validate_owner_references(owners: list[Mapping[str, Any]]) -> Causes:
    causes: Causes = []
    controllers = 0
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                causes.append(invalid(f"metadata.ownerReferences.{field}", "", f"{field} must not be empty"))
        if owner.get("controller"):
            controllers += 1
    if controllers > 1:
        causes.append(
            invalid(
                "metadata.ownerReferences", owners, 'Only one reference can have Controller set to true. Found "true"'
            )
        )
    return causes


@cache_short(16384)
def _key_problems(key: str) -> tuple[str, ...]:
    return tuple(nameformats.qualified_name(key))


@cache_short(16384)
def _value_problems(value: str) -> tuple[str, ...]:
    return tuple(nameformats.label_value(value))
