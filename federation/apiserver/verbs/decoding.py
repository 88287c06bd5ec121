"""Decoding rules for objects from the wire: unknown fields, wrong types, nulls, schema rules.

Built-in kinds behave like Go structs: unknown fields are dropped (with a warning, or refused under Strict), empty
fields and quantities take Go's form, and a wrong type is a 400. Custom resources are pruned, defaulted and validated by
their structural schema; a violation is a 422. Pure; changes `obj` in place. `preparation.py` decides which parts of an
update are checked.
"""

from collections.abc import Set as AbstractSet
from typing import Any

from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.defaulting import apply_defaults, prune
from federation.apiserver.semantics.schema.goform import to_go_form
from federation.apiserver.semantics.schema.validation import decode_errors, validate
from federation.apiserver.verbs.fieldvalidation import not_handled, report_problems, to_texts
from federation.apiserver.verbs.requestoptions import WriteOptions

_MODES = frozenset({"", "Strict", "Warn", "Ignore"})
_CONTAINERS = frozenset((dict, list))


def check_fields(info: KindInfo, obj: Object, options: WriteOptions, *, is_partial: bool = False) -> Causes:
    """Prune, normalize, default and validate `obj`, and return a custom resource's causes.

    A partial object has only the changed top-level fields of a built-in kind.
    BadRequest for unknown fields under Strict and for wrong types in built-in kinds.
    """
    _complete(info, obj, options, is_partial=is_partial)
    if info.is_custom:
        return validate(info.schema, obj)
    if wrong := decode_errors(info.schema, obj):
        raise BadRequest(not_handled(info, wrong[0]))
    return []


def _complete(info: KindInfo, obj: Object, options: WriteOptions, *, is_partial: bool = False) -> None:
    """Prune, normalize and default `obj`; BadRequest."""
    mode = options.field_validation
    if mode not in _MODES:
        raise BadRequest(
            f'fieldValidation: Unsupported value: "{mode}": supported values: "", "Ignore", "Strict", "Warn"'
        )
    if info.is_custom:
        _check_metadata(info, obj)
    dropped = prune(info.schema, obj, is_sorted=options.is_patch)
    if not info.is_custom:
        to_go_form(info.schema, obj, is_partial=is_partial)
    if dropped and mode != "Ignore":
        report_problems(info, to_texts(dropped), options)
    if info.is_custom:
        apply_defaults(info.schema, obj)


def check_replacement(info: KindInfo, new: Object, old: Object, options: WriteOptions) -> Causes:
    """Check a custom resource that replaces another one, but of its metadata only what differs.

    The rules for metadata are those of Kubernetes, whatever became of the schema since `old` was stored. Other parts
    are not completed if they are the very parts of `old`: a controller's patch did not touch them. Violations that the
    resource shares with `old` are ignored (ratcheting).
    """
    metadata, before = new["metadata"], old["metadata"]
    parts = {
        key: value for key, value in new.items() if value is not old.get(key) or value.__class__ not in _CONTAINERS
    }
    changed = {key: value for key, value in metadata.items() if not is_json_equal(value, before.get(key))}
    parts["metadata"] = dict(changed)
    names = set(parts)
    _complete(info, parts, options)
    _merge(metadata, changed.keys(), parts.pop("metadata"))
    _merge(new, names - {"metadata"}, parts)
    return validate(
        info.schema, {**new, "metadata": {key: metadata[key] for key in changed if key in metadata}}, old=old
    )


def _merge(whole: Object, names: AbstractSet[str], parts: Object) -> None:
    """Put completed parts of these names back into the whole, which keeps all others."""
    for name in names - parts.keys():
        del whole[name]
    for name, value in parts.items():
        if name in names or name not in whole:
            whole[name] = value


def _check_metadata(info: KindInfo, obj: Object) -> None:
    """Check a custom resource's metadata as Go's ObjectMeta, whatever its schema says."""
    metadata = obj.get("metadata")
    if metadata is None:
        return
    drop_nulls(metadata)
    if wrong := decode_errors(info.schema.properties["metadata"], metadata):
        raise BadRequest(not_handled(info, wrong[0]))


def drop_nulls(value: Any) -> None:
    """Remove every mapping entry whose value is null, at any depth, in place."""
    # Every write walks its object here. Parsed JSON has no subclasses, and comparing classes needs no calls.
    if value.__class__ is dict:
        has_nulls = False
        for inner in value.values():
            kind = inner.__class__
            if inner is None:
                has_nulls = True
            elif kind is dict or kind is list:
                drop_nulls(inner)
        if has_nulls:
            for key in [key for key, inner in value.items() if inner is None]:
                del value[key]
    elif value.__class__ is list:
        for inner in value:
            kind = inner.__class__
            if kind is dict or kind is list:
                drop_nulls(inner)
