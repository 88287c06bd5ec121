"""The pure middle of every write: from the object of a request to the object that is stored.

`prepare_create` and `prepare_update` fill system fields, keep spec and status apart, default, validate, increment the
generation and track field managers. They change the given object in place, never the live one, and raise ApiErrors.
`writes.py` does the I/O around them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import BadRequest, Conflict, invalid
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.objectmeta import (
    validate_managed_fields,
    validate_metadata,
    validate_metadata_update,
)
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.fieldownership.managedfields import Entry, is_unchanged, track_update
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.goform import add_zeros
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.semantics.validation.addressvalidation import is_legacy
from federation.apiserver.semantics.validation.fieldrules import validate_rules
from federation.apiserver.verbs.context import DefaultAdmission, status_details
from federation.apiserver.verbs.decoding import check_fields, check_replacement
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user

_DROPPED_ON_CREATE = (
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
)
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "generation", "generateName")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")
_TEXT = frozenset({str, type(None)})
_OMITTED_EMPTY = frozenset({"labels", "annotations", "ownerReferences", "finalizers", "managedFields"})
STATUS_PARTS = frozenset({"status", "approval"})
"""Subresources that write parts of the status."""
_SPEC_PARTS = frozenset({"ephemeralcontainers", "resize"})
"""Subresources that write parts of the spec."""
WHOLE_OBJECTS = STATUS_PARTS | _SPEC_PARTS | {""}
"""Subresources whose requests carry the whole object."""
_MAIN = frozenset({"", "scale"})
_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may"
    " reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
_GENERATED = _MAIN | _SPEC_PARTS
"""Writes of the object itself, as opposed to its status, binding or finalizers."""


def check_envelope(info: KindInfo, namespace: str, name: str, obj: Object, *, may_lack_name: bool = False) -> None:
    """Check that kind, namespace and name agree with the request's path, and fill absent ones; BadRequest.

    Only an apply may lack its name; a replacement or another patch without one has lost its metadata.
    """
    resource = info.resource
    if obj.setdefault("apiVersion", resource.api_version) != resource.api_version:
        raise BadRequest(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version"
            f" ({resource.api_version})"
        )
    if obj.setdefault("kind", resource.kind) != resource.kind:
        raise BadRequest(f"the kind in the data ({obj['kind']}) does not match the expected kind ({resource.kind})")
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    for field in _TEXTS:
        if type(metadata.get(field)) not in _TEXT:
            raise BadRequest(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: cannot'
                f" unmarshal into Go struct field ObjectMeta.metadata.{field} of type string"
            )
    if resource.namespaced:
        if not namespace:
            raise BadRequest("an empty namespace may not be set when a resource name may be provided")
        if metadata.get("namespace", namespace) not in {namespace, ""}:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)  # Kubernetes ignores it, and manifests of ClusterRoles often have one
    if may_lack_name and metadata.get("name") is None:
        metadata["name"] = name
    if name and not metadata.get("name"):
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if name and metadata["name"] != name:
        raise BadRequest(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")


def complete(info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
    """Check types, default, and fill identity fields, as admission expects an object; BadRequest."""
    check_fields(info, obj, options)
    info.strategy.default(obj)
    if old is not None:
        for field in (*_SYSTEM_FIELDS, "managedFields"):
            if not obj["metadata"].get(field) and field in old["metadata"]:
                obj["metadata"][field] = old["metadata"][field]


def prepare_create(
    info: KindInfo,
    obj: Object,
    options: WriteOptions,
    *,
    now: datetime,
    uid: str,
    entries: list[Entry] | None = None,
    defaults: DefaultAdmission | None = None,
) -> None:
    """Turn `obj` into the new object to store; Invalid, BadRequest, Forbidden.

    `entries` are its managed fields, if admission has seen the object; it changes fields that no manager owns then.
    """
    strategy = info.strategy
    metadata = obj["metadata"]
    _drop_absent(metadata)
    if "status" in info.subresources and not strategy.keeps_status_on_create:
        obj.pop("status", None)
    causes = check_fields(info, obj, options)
    for field in _DROPPED_ON_CREATE:
        metadata.pop(field, None)
    if info.rules is not None:
        causes += info.rules.check(obj, None, causes)
    strategy.default(obj)
    if entries is None:
        entries = track_create(info, obj, options, now=now)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = to_rfc3339(now)
    if defaults is not None:
        defaults.mutate(info, obj, None, options)
    if strategy.records_requester and options.user is not None:
        strategy.record_requester(obj, options.user())
    strategy.prepare_create(obj)
    strategy.set_times(obj, None, now)
    strategy.complete_status(obj)
    if strategy.has_generation and strategy.initial_generation:
        metadata["generation"] = strategy.initial_generation
    elif strategy.has_generation:
        metadata.pop("generation", None)
    if strategy.initial_finalizers:
        metadata["finalizers"] = [
            *(metadata.get("finalizers") or ()),
            *(name for name in strategy.initial_finalizers if name not in (metadata.get("finalizers") or ())),
        ]
    causes = (
        validate_metadata(
            metadata,
            namespaced=info.resource.namespaced,
            name_rule=strategy.name_problems,
            are_known_finalizers=strategy.knows_finalizers,
        )
        + validate_managed_fields(entries)
        + causes
        + validate_rules(strategy.rules, obj)
        + strategy.validate(obj)
    )
    if causes:
        raise _invalid(info, metadata.get("name", ""), causes)
    if entries:
        metadata["managedFields"] = entries
    options.warnings.extend(strategy.warnings(obj, None))


def track_create(info: KindInfo, obj: Object, options: WriteOptions, *, now: datetime) -> list[Entry]:
    """Remove the managed fields of a new object and return the new ones: its creator's, beside given ones if valid.

    As in kube-apiserver they are the fields of the request and their defaults, not what the server adds later. What
    this process creates without a field manager has none, because each costs time. Owners are listed once.
    """
    _drop_repeated_owners(obj["metadata"], options)
    for field in _DROPPED_ON_CREATE:
        obj["metadata"].pop(field, None)
    given = obj["metadata"].pop("managedFields", None)
    is_users = options.user is not None and options.user is not own_user
    if not (options.field_manager or is_users or info.strategy.records_every_creator):
        return []
    fields = {key: value for key, value in obj.items() if key != "status"} if "status" in info.subresources else obj
    if given:
        fields = {**fields, "metadata": {**fields["metadata"], "managedFields": given}}
    found: list[Entry] = _track(info, fields, None, manager=_manager_of(options), now=now)["metadata"].get(
        "managedFields", []
    )
    return found


def _manager_of(options: WriteOptions) -> str:
    return options.field_manager or options.user_agent.partition("/")[0] or "unknown"


def _drop_repeated_owners(metadata: dict[str, Any], options: WriteOptions, *, is_patched: bool = False) -> None:
    """Remove owner references that occur before, with a warning."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: list[Any] = []
    repeated = []
    for owner in owners:
        if owner in kept:
            repeated.append(str(owner.get("uid", "")))
        else:
            kept.append(owner)
    if repeated:
        metadata["ownerReferences"] = kept
        when = " after mutating admission happens" if is_patched else ""
        options.warnings.append(_REPEATED_OWNERS.format(when, ", ".join(repeated)))


def with_finalizers(info: KindInfo, obj: Object, finalizers: Sequence[str], *, manager: str, now: datetime) -> Object:
    """Return a prepared new object with these finalizers added.

    Managed fields record `manager` as their owner, so that a later apply by the object's creator does not drop them.
    """
    present = obj["metadata"].get("finalizers") or []
    missing = [name for name in finalizers if name not in present]
    if not missing:
        return obj
    new = {**obj, "metadata": {**obj["metadata"], "finalizers": [*present, *missing]}}
    return _track(info, new, obj, manager=manager, now=now)


def prepare_update(
    info: KindInfo,
    new: Object,
    old: Object,
    options: WriteOptions,
    *,
    now: datetime,
    subresource: str,
    is_apply: bool,
    defaults: DefaultAdmission | None = None,
) -> Object | None:
    """Return the object to store in place of `old`, None when nothing changes; Invalid, BadRequest, Conflict.

    Changes `new` in place. The caller has checked its metadata.resourceVersion.
    """
    if not options.is_patch:
        _check_identity(info, new, old)
    if "ownerReferences" in new["metadata"]:
        _drop_repeated_owners(new["metadata"], options, is_patched=options.is_patch)
    if subresource in STATUS_PARTS:
        new = _only_status(info, new, old)
    _copy_system_fields(info, new, old, subresource, is_apply=is_apply)
    causes = _check_changes(info, new, old, options, is_apply=is_apply)
    strategy = info.strategy
    if subresource == "status":
        strategy.prepare_status_update(new, old)
        strategy.complete_status(new)
    elif subresource == "approval":
        strategy.prepare_approval(new, old)
    elif subresource in _SPEC_PARTS:
        strategy.default(new)
        if defaults is not None:
            defaults.mutate(info, new, old, options)
        strategy.prepare_part(subresource, new, old)
    elif subresource in _MAIN:
        strategy.default(new)
        if defaults is not None:
            defaults.mutate(info, new, old, options)
        strategy.prepare_update(new, old)
    strategy.set_times(new, old, now)
    if is_unchanged(new, old):
        if subresource in _MAIN:
            options.warnings.extend(strategy.warnings(new, old))
        return None
    if strategy.has_generation and subresource in _GENERATED and strategy.has_spec_changed(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    metadata = new["metadata"]
    known = validate_metadata_update(
        metadata,
        old["metadata"],
        are_known_finalizers=strategy.knows_finalizers,
        name_rule=None if info.is_custom or not strategy.names_again else strategy.name_problems,
    )
    causes = known + validate_managed_fields(metadata.get("managedFields") or []) + causes
    if subresource == "status":
        causes += strategy.validate_status_update(new, old)
    elif subresource == "approval":
        causes += strategy.validate_approval(new, old)
    elif subresource in _SPEC_PARTS:
        causes += strategy.validate_part(subresource, new, old)
    elif subresource in _MAIN:
        causes += validate_rules(strategy.rules, new) + strategy.validate_update(new, old)
        causes = _without_legacy(strategy, causes, old)
    if causes:
        raise _invalid(info, new["metadata"].get("name", ""), causes)
    if subresource in _MAIN:
        options.warnings.extend(strategy.warnings(new, old))
    if is_apply or not (options.field_manager or "managedFields" in new["metadata"]):
        return new
    return _track(info, new, old, manager=_manager_of(options), now=now, subresource=subresource)


def _without_legacy(strategy: Strategy, causes: Causes, old: Object) -> Causes:
    """Return the causes without those of addresses that are stored already, from a time when they were valid."""
    if not any(is_legacy(cause["message"]) for cause in causes):
        return causes
    stored = validate_rules(strategy.rules, old) + strategy.validate(old)
    return [cause for cause in causes if not is_legacy(cause["message"]) or cause not in stored]


def must_be_removed(info: KindInfo, obj: Object) -> bool:
    """Return whether the write of a terminating object must remove it: no finalizer or grace period is left."""
    metadata = obj["metadata"]
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and info.strategy.is_removable(obj)
    )


def _check_identity(info: KindInfo, new: Object, old: Object) -> None:
    uid, live_uid = new["metadata"].get("uid"), old["metadata"]["uid"]
    if uid and uid != live_uid:
        name = old["metadata"]["name"]
        raise Conflict(
            f'Operation cannot be fulfilled on {info.group_resource} "{name}": Precondition failed: UID in'
            f" precondition: {uid}, UID in object meta: {live_uid}",
            details=status_details(info, name),
        )


def _only_status(info: KindInfo, new: Object, old: Object) -> Object:
    """Return the live object with the new status.

    As in kube-apiserver, the status subresource of most built-in kinds also writes the metadata.
    """
    strategy = info.strategy
    metadata = dict(old["metadata"] if info.is_custom else new["metadata"])
    for field in strategy.status_resets:
        metadata[field] = old["metadata"].get(field)
    if "managedFields" in new["metadata"]:
        metadata["managedFields"] = new["metadata"]["managedFields"]
    merged = {**old, "metadata": metadata}
    if new.get("status") is None:
        merged.pop("status", None)
    else:
        merged["status"] = new["status"]
    return merged


def _copy_system_fields(info: KindInfo, new: Object, old: Object, subresource: str, *, is_apply: bool) -> None:
    """Copy the fields that only the system changes from `old` to `new`."""
    metadata, live = new["metadata"], old["metadata"]
    for field in _SYSTEM_FIELDS:
        if not metadata.get(field) and field in live:
            metadata[field] = live[field]
    metadata["creationTimestamp"] = live.get("creationTimestamp")
    metadata["generation"] = live.get("generation")
    if live.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = live["deletionTimestamp"]
    if metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = live.get("deletionGracePeriodSeconds")
    metadata["resourceVersion"] = live["resourceVersion"]
    if not is_apply:
        if not metadata.get("managedFields"):
            metadata["managedFields"] = live.get("managedFields")
        for entry in metadata["managedFields"] or ():
            if isinstance(entry, dict) and "time" in entry:
                entry["time"] = _in_server_format(entry["time"])
    metadata.pop("selfLink", None)
    _drop_absent(metadata)
    if "status" in info.subresources and subresource in _MAIN:
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)


def _drop_absent(metadata: dict[str, Any]) -> None:
    """Remove fields that Kubernetes does not serialize: nulls, and empty maps and lists."""
    for field in [key for key, value in metadata.items() if value is None or (not value and key in _OMITTED_EMPTY)]:
        del metadata[field]


def _in_server_format(time: Any) -> Any:
    """Return a time in the server's format; clients that parse times send them back in another one."""
    if not isinstance(time, str) or time.endswith("Z"):
        return time
    try:
        return to_rfc3339(from_rfc3339(time).astimezone(UTC))
    except ValueError:
        return time


def _check_changes(info: KindInfo, new: Object, old: Object, options: WriteOptions, *, is_apply: bool) -> Causes:
    """Check the changed fields. A custom resource is validated whole, because its CEL rules may compare fields."""
    if info.is_custom:
        if not _differs(new, old):
            return []
        causes = check_replacement(info, new, old, options)
        return causes if info.rules is None else causes + info.rules.check(new, old, causes)
    for key in [key for key, value in new.items() if value is None and key not in old]:
        del new[key]  # equals the absent field, so that the changed fields do not have it
    changed = _changed(new, old)
    metadata = changed.get("metadata")
    if metadata is not None:
        metadata = changed["metadata"] = _changed(metadata, old["metadata"])
        if is_apply:
            metadata.pop("managedFields", None)  # computed by the server and larger than the rest: no need to check
        if not metadata:
            del changed["metadata"]
    if not changed:
        return []
    changed["kind"] = new["kind"]
    before, metadata_before = set(changed), set(metadata or ())
    causes = check_fields(info, changed, options, is_partial=True)
    for key in before - changed.keys():
        del new[key]
    new.update(changed, metadata=new["metadata"])
    add_zeros(info.schema, new)
    for key in metadata_before - (metadata or {}).keys():
        del new["metadata"][key]
    return causes


def _changed(new: Object, old: Object) -> Object:
    """Return the fields of `new` that differ from `old`; the values are shared with `new`."""
    return {key: value for key, value in new.items() if not is_json_equal(value, old.get(key))}


def _differs(new: Object, old: Object) -> bool:
    return new.keys() != old.keys() or any(
        not is_json_equal(value, old[key]) for key, value in new.items() if key != "metadata" and value is not old[key]
    )


def _track(
    info: KindInfo, new: Object, old: Object | None, *, manager: str, now: datetime, subresource: str = ""
) -> Object:
    version = info.resource.api_version
    return track_update(info.schema, old, new, manager=manager, api_version=version, subresource=subresource, now=now)


def _invalid(info: KindInfo, name: str, causes: Causes) -> Exception:
    resource = info.stored_as or info.resource  # kube-apiserver validates what it stores
    return invalid(resource.kind, resource.group, name, causes)
