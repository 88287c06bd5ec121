"""Validation of object metadata on create and update.

Follows ValidateObjectMeta and ValidateObjectMetaUpdate of k8s.io/apimachinery. Results of label checks are cached,
because most objects share the same few labels.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, non_negative, required, too_long
from federation.apimachinery.textcache import cache_short

ANNOTATIONS_BYTES_MAX = 256 * 1024
MANAGER_BYTES_MAX, SUBRESOURCE_BYTES_MAX = 128, 256
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
STANDARD_FINALIZERS = frozenset({ORPHAN, FOREGROUND, "kubernetes"})
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
NameRule = Callable[[str], list[str]]


def validate_metadata(
    metadata: Mapping[str, Any], *, namespaced: bool, name_rule: NameRule, are_known_finalizers: bool = False
) -> Causes:
    """Check names, labels, annotations, owner references and finalizers of a new object.

    With `are_known_finalizers` a finalizer without a domain must be one of Kubernetes' own.
    """
    causes: Causes = []
    name, prefix = metadata.get("name", ""), metadata.get("generateName")
    causes += _validate_prefix(prefix, name_rule)
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += [invalid("metadata.name", name, text) for text in name_rule(name)]
    if namespaced and not metadata.get("namespace"):
        causes.append(required("metadata.namespace"))
    return causes + _validate_mutable(metadata, are_known_finalizers=are_known_finalizers)


def validate_metadata_update(
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    are_known_finalizers: bool = False,
    name_rule: NameRule | None = None,
) -> Causes:
    """Check an update of metadata; `new` includes the fields that the server sets.

    With a `name_rule` a changed generateName has to follow it.
    """
    causes: Causes = []
    if name_rule is not None and new.get("generateName") != old.get("generateName"):
        causes += _validate_prefix(new.get("generateName"), name_rule)
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
    for field in _FIXED:
        if new.get(field) != old.get(field):
            causes.append(invalid(f"metadata.{field}", new.get(field), "field is immutable"))
    return causes + _validate_mutable(new, old, are_known_finalizers=are_known_finalizers)


def _validate_prefix(prefix: str | None, name_rule: NameRule) -> Causes:
    if not prefix:
        return []
    # A trailing hyphen is allowed: the name continues after it.
    whole = f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    return [invalid("metadata.generateName", prefix, text) for text in name_rule(whole)]


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


def validate_manager(field: str, manager: str) -> Causes:
    """Check the name of a field manager."""
    causes = [too_long(field, MANAGER_BYTES_MAX)] if len(manager.encode()) > MANAGER_BYTES_MAX else []
    if manager.isprintable():
        return causes
    at = 0
    for letter in manager:
        if not letter.isprintable():
            text = f"invalid character U+{ord(letter):04X} (at position {at})"
            causes.append(invalid(field, manager, text))
        at += len(letter.encode())
    return causes


def validate_managed_fields(entries: Sequence[Any]) -> Causes:
    """Check the managers and subresources of managed fields that a client wrote."""
    causes: Causes = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue  # the entries are replaced by the stored ones
        field = f"metadata.managedFields[{index}]"
        causes += validate_manager(f"{field}.manager", entry.get("manager") or "")
        if len((entry.get("subresource") or "").encode()) > SUBRESOURCE_BYTES_MAX:
            causes.append(too_long(f"{field}.subresource", SUBRESOURCE_BYTES_MAX))
    return causes


def _validate_mutable(
    metadata: Mapping[str, Any], old: Mapping[str, Any] = MappingProxyType({}), *, are_known_finalizers: bool
) -> Causes:
    """Check what an update may change, in as far as it differs from the stored state."""
    causes: Causes = non_negative("metadata.generation", metadata.get("generation"))
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
    if finalizers := metadata.get("finalizers"):
        causes += _validate_finalizers(finalizers, are_known=are_known_finalizers)
    return causes


def _validate_owner_references(owners: list[Mapping[str, Any]]) -> Causes:
    causes: Causes = []
    field, controller = "metadata.ownerReferences", ""
    for owner in owners:
        api_version, kind, name = owner.get("apiVersion") or "", owner.get("kind") or "", owner.get("name") or ""
        # A version with more than one slash is none.
        if not api_version.rpartition("/")[2] or api_version.count("/") > 1:
            causes.append(invalid(f"{field}.apiVersion", api_version, "version must not be empty"))
        for part, value in (("kind", kind), ("name", name), ("uid", owner.get("uid") or "")):
            if not value:
                causes.append(invalid(f"{field}.{part}", "", "must not be empty"))
        if (api_version, kind) == ("v1", "Event"):
            causes.append(invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            if controller:
                found = f'Found "true" in references for {controller} and {kind}/{name}'
                causes.append(invalid(field, owners, f"Only one reference can have Controller set to true. {found}"))
            else:
                controller = f"{kind}/{name}"
    return causes


def _validate_finalizers(finalizers: list[str], *, are_known: bool) -> Causes:
    field = "metadata.finalizers"
    causes = [invalid(field, name, problem) for name in finalizers for problem in _key_problems(name)]
    if finalizers.count(ORPHAN) and finalizers.count(FOREGROUND):
        causes.append(invalid(field, finalizers, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"))
    if are_known:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        causes += [
            invalid(f"{field}[{index}]", name, text)
            for index, name in enumerate(finalizers)
            if "/" not in name and name not in STANDARD_FINALIZERS
        ]
    return causes


@cache_short(16384)
def _key_problems(key: str) -> tuple[str, ...]:
    return tuple(nameformats.qualified_name(key))


@cache_short(16384)
def _value_problems(value: str) -> tuple[str, ...]:
    return tuple(nameformats.label_value(value))
