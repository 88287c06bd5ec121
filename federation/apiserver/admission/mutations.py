"""The mutations of a MutatingAdmissionPolicy: compile them, and apply their patches to an object. Pure.

An expression returns an apply configuration, merged as server-side apply merges but without field ownership, or a JSON
patch. Objects are copied on write. `semantics/cel/patchtypes.py` describes the values of expressions.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, FederationError, InternalError
from federation.apimachinery.jsonpatch import TestFailedError, apply_json_patch
from federation.apimachinery.resources import Object
from federation.apiserver.admission.matching import Expression
from federation.apiserver.admission.requests import is_object
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.patchtypes import JSON_PATCH, JSON_PATCH_LIST, OBJECT, TYPE_KEY, type_name
from federation.apiserver.semantics.cel.programs import CompileError
from federation.apiserver.semantics.fieldownership.fielddiff import to_field_set
from federation.apiserver.semantics.fieldownership.merging import merge_object
from federation.apiserver.semantics.schema.defaulting import prune
from federation.apiserver.semantics.schema.model import ANY, LIST, MAP, STRUCT, Schema
from federation.apiserver.semantics.schema.validation import decode_errors

PATCH_BYTES_MAX: Final = 3 * 1024 * 1024
"""Total size of the patches of one request: that of the largest request body."""
_SAFE_INTEGER: Final = (1 << 53) - 1
_TEXT_FIELDS: Final = ("op", "path", "from")


class MutationError(FederationError):
    """A patch cannot be computed or applied; the message is kube-apiserver's."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One entry of `spec.mutations`."""

    expression: Expression
    is_json_patch: bool


@dataclass(frozen=True, slots=True)
class Mutations:
    """The parts that only a MutatingAdmissionPolicy has."""

    entries: tuple[Mutation, ...]
    is_reinvoked: bool


@dataclass(slots=True)
class PatchBudget:
    """The bytes that the mutations of one request may still add."""

    left: int = field(default=PATCH_BYTES_MAX)

    def spend(self, count: int) -> None:
        """Subtract from the budget; MutationError when it is exceeded."""
        self.left -= count
        if self.left < 0:
            raise MutationError(f"the patches of all mutations of a request must not exceed {PATCH_BYTES_MAX} bytes")


def parse_mutations(spec: Mapping[str, Any], names: Environment) -> Mutations:
    """Compile the mutations of a stored policy."""
    return Mutations(
        tuple(_parse(raw, names) for raw in spec.get("mutations") or ()),
        spec.get("reinvocationPolicy") == "IfNeeded",
    )


def _parse(raw: Mapping[str, Any], names: Environment) -> Mutation:
    is_json_patch = raw.get("patchType") == "JSONPatch"
    text = (raw.get("jsonPatch" if is_json_patch else "applyConfiguration") or {}).get("expression") or ""
    try:
        program = names.compile_patch(text, JSON_PATCH_LIST if is_json_patch else OBJECT)
    except CompileError as error:
        return Mutation(Expression(text, None, str(error)), is_json_patch)
    return Mutation(Expression(text, program), is_json_patch)


def mutate_object(
    mutation: Mutation, schema: Schema, obj: Object, data: Mapping[str, Any], budget: PatchBudget
) -> Object:
    """Return the object with the patch applied, the object itself when a `test` operation fails.

    `schema` is that of the object, `data` the values of variables. EvaluationError, MutationError; InternalError when
    a JSON patch adds what the kind does not have.
    """
    value = mutation.expression.evaluate(data)
    if mutation.is_json_patch:
        return _apply_operations(schema, obj, list(_to_operations(value)), budget)
    return _apply_configuration(schema, obj, value, budget)


def _apply_configuration(schema: Schema, obj: Object, value: Any, budget: PatchBudget) -> Object:
    if type_name(value) != OBJECT:
        raise MutationError("unsupported return type from ApplyConfiguration expression: expected Object")
    _check_names(value)
    config = {
        **_to_json(value, has_long_numbers=True),
        **{key: obj[key] for key in ("apiVersion", "kind") if key in obj},
    }
    budget.spend(len(orjson.dumps(config)))
    errors: list[str] = []
    to_field_set(schema, config, frozenset(), errors)
    if errors:
        listed = errors[0] if len(errors) == 1 else "errors:\n" + "".join(f"  {error}\n" for error in errors)
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {listed}")
    if atomics := list(_find_atomics(schema, config, "")):
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs:"
            f" {', '.join(atomics)}"
        )
    return merge_object(schema, obj, config, frozenset())[0]


def _find_atomics(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Yield the places of atomic maps, structs and lists, in which a patch would drop what it does not name."""
    if isinstance(value, dict) and schema.kind in (STRUCT, MAP, ANY):
        if schema.is_atomic:
            yield path
        for name, inner in value.items():
            if (below := schema.properties.get(name)) is not None:
                yield from _find_atomics(below, inner, f"{path}.{name}")
    elif isinstance(value, list) and schema.kind in (LIST, ANY):
        if schema.is_atomic or schema.kind == ANY:
            yield path
        for index, inner in enumerate(value):
            if schema.items is not None:
                yield from _find_atomics(schema.items, inner, f"{path}[{index}]")


def _apply_operations(schema: Schema, obj: Object, operations: list[Object], budget: PatchBudget) -> Object:
    budget.spend(len(orjson.dumps(operations)))
    try:
        patched = apply_json_patch(obj, operations)
    except ApiError as error:
        if isinstance(error.__cause__, TestFailedError):
            return obj
        raise MutationError(f"JSON Patch: {error.__cause__ or error}") from error
    if any(operation["op"] == "copy" for operation in operations):
        budget.spend(max(0, len(orjson.dumps(patched)) - len(orjson.dumps(obj))))
    if not is_object(patched, obj):
        raise InternalError("Internal error occurred: the JSON patch does not leave an object")
    if schema.native:
        _decode(schema, patched)
    found: Object = patched
    return found


def _decode(schema: Schema, patched: Object) -> None:
    """Raise InternalError for unknown fields and wrong types of a built-in kind."""
    if unknown := prune(schema, patched):
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise InternalError(f"Internal error occurred: strict decoding error: {listed}")
    if wrong := decode_errors(schema, patched):
        raise InternalError(f"Internal error occurred: {wrong[0]}")


def _to_operations(value: Any) -> Iterator[Object]:
    for entry in value if isinstance(value, list) else (value,):
        if not isinstance(entry, dict) or type_name(entry) != JSON_PATCH:
            raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        operation = {"op": "", "path": ""}
        for name in _TEXT_FIELDS:
            text = entry.get(name, "")
            if not isinstance(text, str):
                kind = type(text).__name__
                raise MutationError(f"unexpected type {kind} for JSONPatchType '{name}' field")
            if text or name != "from":
                operation[name] = text
        if "value" in entry:
            _check_names(entry["value"])
            operation["value"] = _to_json(entry["value"], has_long_numbers=False)
        yield operation


def _check_names(value: Any) -> None:
    """Raise MutationError unless the types of nested objects name the fields that hold them."""
    if name := type_name(value):
        problems = list(_misnamed(value, name))
        if problems:
            raise MutationError("type mismatch: " + "\n".join(problems))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _misnamed(item, path)
    elif isinstance(value, dict):
        name = type_name(value)
        if name and name != path:
            yield (
                f'unexpected type name "{name}", expected "{path}", which matches field name path from root Object type'
            )
        for key, inner in value.items():
            if key is not TYPE_KEY:
                yield from _misnamed(inner, f"{path}.{key}" if name else path)


def _to_json(value: Any, *, has_long_numbers: bool) -> Any:
    """Return a value of CEL as JSON. Without long numbers it is as protobuf's Value holds it; they become text."""
    if isinstance(value, dict):
        converted = {}
        for key, inner in value.items():
            if key is TYPE_KEY:
                continue
            if not isinstance(key, str):
                raise MutationError(f'map key "{key}" is of type {type(key).__name__}, not string')
            converted[key] = _to_json(inner, has_long_numbers=has_long_numbers)
        return converted
    if isinstance(value, list):
        return [_to_json(item, has_long_numbers=has_long_numbers) for item in value]
    if isinstance(value, datetime):
        return to_rfc3339(value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, str | bool | float | int):
        is_text = not has_long_numbers and isinstance(value, int) and not -_SAFE_INTEGER <= value <= _SAFE_INTEGER
        return str(value) if is_text else value
    raise MutationError(f"the value of type {type(value).__name__} has no JSON form")
