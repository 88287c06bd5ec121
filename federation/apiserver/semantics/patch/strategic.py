"""Strategic merge patch: a merge patch that merges lists by the merge keys of the schema. Pure, copy on write.

Follows k8s.io/apimachinery's strategicpatch: `$patch` (replace, delete, merge), `$retainKeys`,
`$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. `ordering.py` orders merged lists.
Errors are BadRequest with the texts of that library; a list of lists is Invalid.
"""

from collections.abc import Mapping
from typing import Any, Final

from federation.apimachinery.errors import BadRequest, Invalid
from federation.apiserver.semantics.patch import ordering
from federation.apiserver.semantics.schema.model import ANYTHING, Schema
from federation.apiserver.semantics.schema.valuevalidation import to_json

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_SET_ORDER: Final = "$setElementOrder/"
_DROPPED: Final = object()


def strategic_merge_patch(schema: Schema, current: Any, patch: Any) -> Any:
    """Return `current` with the strategic merge patch `patch` merged in; BadRequest, Invalid."""
    if not isinstance(patch, dict) or not isinstance(current, dict):
        raise BadRequest("invalid JSON document: a strategic merge patch is an object")
    return _merge_map(schema, current, patch)


def _merge_map(schema: Schema, original: Mapping[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _DIRECTIVE in patch:
        return _apply_directive(patch)
    merged = dict(original)
    _retain_keys(merged, patch)
    ordered = {key[len(_SET_ORDER) :]: value for key, value in patch.items() if key.startswith(_SET_ORDER)}
    for field, order in ordered.items():
        _merge_ordered(schema, merged, original, patch, field, order)
    for key, value in patch.items():
        if key == _RETAIN_KEYS or key in ordered or key.startswith(_SET_ORDER):
            continue
        if key.startswith(_DELETE_FROM):
            field = key[len(_DELETE_FROM) :]
            if field in merged:
                merged[field] = _delete_from_primitive_list(field, merged[field], value)
            continue
        _merge_field(schema, merged, key, value)
    return merged


def _merge_field(schema: Schema, merged: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        merged.pop(key, None)
        return
    if key not in merged or not _same_type(merged[key], value):
        cleaned = _clean(value)
        if cleaned is not _DROPPED:
            merged[key] = cleaned
        return
    if isinstance(value, dict):
        field = _field(schema, key)
        merged[key] = value if "replace" in field.patch_strategy else _merge_map(field, merged[key], value)
    elif isinstance(value, list):
        merged[key] = _merge_list(_field(schema, key), key, merged[key], value)
    else:
        merged[key] = value


def _field(schema: Schema, key: str) -> Schema:
    found = schema.child(key)
    if found is not None:
        return found
    if schema.name:
        raise BadRequest(f"unable to find api field in struct {schema.name} for the json field {to_json(key)}")
    return ANYTHING


def _same_type(left: Any, right: Any) -> bool:
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return type(left) is type(right)
    return True


def _apply_directive(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise BadRequest(f"unknown patch type: {directive} in map: {to_json(patch)}")


def _retain_keys(merged: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """Remove the fields that `$retainKeys` does not list; a patch that sets one of them is a BadRequest."""
    retained = patch.get(_RETAIN_KEYS)
    if retained is None:
        return
    if not isinstance(retained, list) or not all(isinstance(name, str) for name in retained):
        raise BadRequest("invalid patch format of retainKeys")
    kept = frozenset(retained)
    for key, value in patch.items():
        field = key
        for prefix in (_DELETE_FROM, _SET_ORDER):
            field = field.removeprefix(prefix)
        if key != _RETAIN_KEYS and value is not None and field not in kept:
            raise BadRequest("invalid patch format of retainKeys")
    for key in merged.keys() - kept:
        del merged[key]


def _clean(value: Any) -> Any:
    """Return a patch value without nulls and directives, for a field that the live object lacks.

    `_DROPPED` means that the value deletes the field.
    """
    if isinstance(value, dict):
        if value.get(_DIRECTIVE) == "delete":
            return _DROPPED
        if _is_clean(value):
            return value
        cleaned = {}
        for key, inner in value.items():
            if inner is None or key in (_DIRECTIVE, _RETAIN_KEYS) or key.startswith((_DELETE_FROM, _SET_ORDER)):
                continue
            kept = _clean(inner)
            if kept is not _DROPPED:
                cleaned[key] = kept
        return cleaned
    if isinstance(value, list):
        items = [_clean(item) for item in value]
        # An item that holds only a directive is an instruction about the list.
        return [
            item
            for item, given in zip(items, value, strict=True)
            if item is not _DROPPED and not (isinstance(given, dict) and given.keys() == {_DIRECTIVE})
        ]
    return value


def _is_clean(value: Any) -> bool:
    if isinstance(value, dict):
        return all(
            inner is not None and not key.startswith("$") and (not isinstance(inner, dict | list) or _is_clean(inner))
            for key, inner in value.items()
        )
    return all(not isinstance(item, dict | list) or _is_clean(item) for item in value)


def _delete_from_primitive_list(field: str, current: Any, removed: Any) -> list[Any]:
    is_list = isinstance(removed, list) and isinstance(current, list)
    if not is_list or any(isinstance(item, dict | list) for item in removed):
        raise BadRequest(f"invalid patch format of primitive list: {field}")
    unwanted = {ordering.scalar_key(item) for item in removed}
    return [item for item in current if ordering.scalar_key(item) not in unwanted]


def _merge_list(field: Schema, name: str, original: list[Any], patch: list[Any]) -> list[Any]:
    if "merge" not in field.patch_strategy:
        cleaned = _clean(patch)
        assert isinstance(cleaned, list)
        return cleaned
    if not original and not patch:
        return original
    kinds = {type(item) if isinstance(item, dict | list) else object for item in (*original, *patch)}
    if list in kinds:
        raise Invalid("lists of lists are not supported")
    if len(kinds) > 1:
        raise BadRequest(f"list element types are not identical: {name}")
    if dict not in kinds:
        unique = list(dict.fromkeys((*original, *patch)))
        return ordering.normalize_element_order(unique, patch, original, "")
    key = field.patch_merge_key
    if not key:
        raise BadRequest(f"cannot merge lists without merge key for {name}")
    items = field.items or ANYTHING
    kept, plain = _apply_item_directives(original, patch, key)
    if plain is None:
        return kept
    merged = list(kept)
    positions = {ordering.scalar_key(item[key]): position for position, item in enumerate(merged) if key in item}
    for item in plain:
        if key not in item:
            raise _no_merge_key(item, key)
        position = positions.get(ordering.scalar_key(item[key]))
        if position is None:
            positions[ordering.scalar_key(item[key])] = len(merged)
            merged.append(_clean(item))
        else:
            merged[position] = _merge_map(items, merged[position], item)
    return ordering.normalize_element_order(merged, plain, original, key)


def _apply_item_directives(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[dict[str, Any]] | None]:
    """Apply the items that hold a `$patch`; return the remaining list and the items to merge into it.

    The second result is None when `$patch: replace` replaced the list.
    """
    plain = [item for item in patch if _DIRECTIVE not in item]
    deleted = set()
    replaces = False
    for item in patch:
        directive = item.get(_DIRECTIVE, _DROPPED)
        if directive is _DROPPED:
            continue
        if directive == "delete":
            if key not in item:
                raise _no_merge_key(item, key)
            deleted.add(ordering.scalar_key(item[key]))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise BadRequest("merging lists cannot yet be specified in the patch")
        else:
            raise BadRequest(f"unknown patch type: {directive} in map: {to_json(item)}")
    if replaces:
        return [_clean(item) for item in plain], None
    if not deleted:
        return original, plain
    return [item for item in original if key not in item or ordering.scalar_key(item[key]) not in deleted], plain


def _merge_ordered(
    schema: Schema,
    merged: dict[str, Any],
    original: Mapping[str, Any],
    patch: Mapping[str, Any],
    name: str,
    order: Any,
) -> None:
    """Merge the list `name` and sort it by its `$setElementOrder`."""
    if not isinstance(order, list):
        raise BadRequest("invalid patch format of setElementOrder list")
    field = _field(schema, name)
    key = field.patch_merge_key
    live, change = merged.get(name), patch.get(name)
    if (live is not None and not isinstance(live, list)) or (change is not None and not isinstance(change, list)):
        raise BadRequest("invalid patch format of setElementOrder list")
    if change:
        ordering.validate_set_element_order(name, change, order, key)
    if live is None and change is None:
        return
    if change is None:
        items = live or []
    elif live is None:
        items = _clean(change)
    else:
        items = _merge_list(field, name, live, change)
    deletions = patch.get(_DELETE_FROM + name)
    if deletions is not None:
        items = _delete_from_primitive_list(name, items, deletions)
    merged[name] = ordering.normalize_element_order(items, order, list(original.get(name) or ()), key)


def _no_merge_key(item: Mapping[str, Any], key: str) -> BadRequest:
    return BadRequest(f"map: {to_json(item)} does not contain declared merge key: {key}")
