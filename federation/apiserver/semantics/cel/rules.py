"""`x-kubernetes-validations`: validation rules, compiled once per version and evaluated on every write. Pure.

`ValidationRules` is a tree of the schema nodes with rules at or below them, so other parts of an object are not
visited. A rule that uses `oldSelf` is a transition rule: it runs where an old value is known (fields, map entries,
items of lists of type map). Other rules do not run for an unchanged value (ratcheting). `programs.py` evaluates.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes
from federation.apiserver.semantics.cel.checkedexpr import RESERVED_WORDS
from federation.apiserver.semantics.cel.programs import (
    OUT_OF_BUDGET,
    CompileError,
    EvaluationError,
    Program,
    compile_expression,
)
from federation.apiserver.semantics.schema.listkeys import index_by_key, item_key
from federation.apiserver.semantics.schema.model import LIST, MAP, NUMBER, STRING, STRUCT, Schema
from federation.apiserver.semantics.schema.validation import CAUSES_MAX

EVALUATIONS_MAX: Final = 5_000
"""Evaluations of rules for one object: a tenth of a second. Each has a limit of its own (`budget.py`)."""
_ABSENT: Final = object()
_INVALID: Final = "FieldValueInvalid"
_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid", "FieldValueNotSupported"}
)
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """One compiled rule."""

    text: str
    program: Program
    is_transition: bool
    has_optional_old_self: bool
    """True if `oldSelf` is an optional value; the rule then also runs without an old value."""
    message: str
    message_program: Program | None
    reason: str
    field_path: str


@dataclass(slots=True)
class ValidationRules:
    """The rules of one schema node and of the nodes below.

    They are compiled for the first value that they apply to, so the CEL runtime is loaded only then. `broken` is the
    compile error; only a CRD that was stored without rule validation can have one.
    """

    schema: Schema
    fields: dict[str, "ValidationRules"] = field(default_factory=dict)
    items: "ValidationRules | None" = None
    additional: "ValidationRules | None" = None
    needs_conversion: bool = False
    rules: tuple[ValidationRule, ...] | None = None
    broken: str = ""

    def check(self, obj: Any, old: Any, found: Causes, path: str = "") -> Causes:
        """Return the causes of failed rules; with blocking schema causes in `found`, no rule is evaluated."""
        if any(known["reason"] in _BLOCKING for known in found):
            return [cause(_INVALID, f"Invalid value: null: {_UNCHECKED}", "<nil>")]
        run = _Run()
        self._check(obj, _ABSENT if old is None else old, path, run)
        return run.causes

    def _check(self, value: Any, old: Any, path: str, run: "_Run") -> None:
        if value is None or run.is_over:
            return
        if old is None:
            old = _ABSENT
        if self.schema.validations:
            self._run(value, old, path, run)
        if value.__class__ is dict:
            related = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                below = self.fields.get(name)
                if below is not None:
                    below._check(inner, related.get(name, _ABSENT), f"{path}.{name}" if path else name, run)
                elif self.additional is not None and name not in self.schema.properties:
                    self.additional._check(inner, related.get(name, _ABSENT), f"{path}[{name}]", run)
        elif self.items is not None and value.__class__ is list:
            before = index_by_key(self.schema, old)
            for index, inner in enumerate(value):
                known = before.get(item_key(self.schema, inner), _ABSENT) if before else _ABSENT
                self.items._check(inner, known, f"{path}[{index}]", run)

    def _compile(self) -> tuple[ValidationRule, ...]:
        if self.rules is None:
            try:
                self.rules = tuple(compile_rule(raw) for raw in self.schema.validations)
            except CompileError as error:
                self.rules, self.broken = (), str(error)
            self.needs_conversion = _needs_conversion(self.schema)
        return self.rules

    def _run(self, value: Any, old: Any, path: str, run: "_Run") -> None:
        rules = self._compile()
        if self.broken:
            run.causes.append(_refusal(self.schema, _INVALID, self.broken, path))
        is_unchanged = old is not _ABSENT and is_json_equal(old, value)
        data: dict[str, Any] = {}
        for rule in rules:
            if rule.is_transition:
                if old is _ABSENT and not rule.has_optional_old_self:
                    continue
            elif is_unchanged:
                continue
            if not run.spend():
                return
            if not data:
                data = self._data(value, old)
            if failure := _evaluate(rule, data):
                field_path = ".".join(filter(None, (path, rule.field_path)))
                run.causes.append(_refusal(self.schema, rule.reason, failure, field_path))

    def _data(self, value: Any, old: Any) -> dict[str, Any]:
        if self.needs_conversion:
            value = _to_cel(self.schema, value)
            old = old if old is _ABSENT else _to_cel(self.schema, old)
        if old is _ABSENT:
            return {"self": value, "oldSelf": None, "knownOld": []}
        return {"self": value, "oldSelf": old, "knownOld": [old]}


@dataclass(slots=True)
class _Run:
    """The validation of one object: its causes, and the evaluations that it may still make."""

    causes: Causes = field(default_factory=list)
    left: int = EVALUATIONS_MAX

    @property
    def is_over(self) -> bool:
        """Whether no further rule runs."""
        return len(self.causes) >= CAUSES_MAX or self.left < 0

    def spend(self) -> bool:
        """Count an evaluation; False without another one left, which is a cause."""
        self.left -= 1
        if self.left == -1:
            self.causes.append(cause(_INVALID, f"Invalid value: null: {OUT_OF_BUDGET}", "<nil>"))
        return self.left >= 0


def compile_rules(schema: Schema) -> ValidationRules | None:
    """Return the rules of a custom resource's schema, None if it has none."""
    if schema.native:
        return None
    below = {name: rules for name, child in schema.properties.items() if (rules := compile_rules(child))}
    items = compile_rules(schema.items) if schema.items is not None else None
    additional = compile_rules(schema.additional) if schema.additional is not None else None
    if not (schema.validations or below or items or additional):
        return None
    return ValidationRules(schema, fields=below, items=items, additional=additional)


def compile_rule(raw: Mapping[str, Any]) -> ValidationRule:
    """Compile one entry of `x-kubernetes-validations`; CompileError."""
    text = str(raw["rule"])
    is_optional = bool(raw.get("optionalOldSelf"))
    # A rule that compiles without `oldSelf` does not use it.
    try:
        program, is_transition = compile_expression(text, ("self",), returns="BOOL"), False
    except CompileError:
        program, is_transition = _compile_with_old_self(text, "BOOL", is_optional=is_optional), True
    expression = raw.get("messageExpression") or ""
    return ValidationRule(
        text=text.strip(),
        program=program,
        is_transition=is_transition,
        has_optional_old_self=is_optional,
        message=raw.get("message") or "",
        message_program=_compile_with_old_self(expression, "STRING", is_optional=is_optional) if expression else None,
        reason=raw.get("reason") or _INVALID,
        field_path=str(raw.get("fieldPath") or "").removeprefix("."),
    )


def _compile_with_old_self(text: str, returns: str, *, is_optional: bool) -> Program:
    if not is_optional:
        return compile_expression(text, ("self", "oldSelf"), returns=returns)
    # JSON data cannot hold an optional value, so the expression builds it, on the first line to keep line numbers.
    known = "size(knownOld) == 0 ? optional.none() : optional.of(knownOld[0])"
    return compile_expression(f"cel.bind(oldSelf, {known}, {text}\n)", ("self", "knownOld"), returns=returns)


def _evaluate(rule: ValidationRule, data: Mapping[str, Any]) -> str:
    """Return the message of a failed rule, "" if the value passes."""
    try:
        answer = rule.program.evaluate(data)
    except EvaluationError as error:
        return f"{error} evaluating rule: {rule.message or rule.text}"
    if answer is True:
        return ""
    if answer is not False:
        return f"the rule's value is not a bool: {rule.text}"
    if rule.message_program is not None:
        try:
            message = rule.message_program.evaluate(data)
        except EvaluationError:
            message = ""  # the fixed message is used, as in kube-apiserver
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return rule.message or f"failed rule: {rule.text}"


def _refusal(schema: Schema, reason: str, message: str, path: str) -> dict[str, str]:
    kind = f'"{schema.type or "object"}"'
    text = {
        "FieldValueForbidden": f"Forbidden: {message}",
        "FieldValueRequired": f"Required value: {message}",
        "FieldValueDuplicate": f"Duplicate value: {kind}",
    }.get(reason, f"Invalid value: {kind}: {message}")
    return cause(reason, text, path or "<nil>")


def _needs_conversion(schema: Schema) -> bool:
    if schema.native:
        return False
    if schema.kind == NUMBER or (schema.kind == STRING and schema.format == "byte"):
        return True
    if any(_escaped(name) != name for name in schema.properties):
        return True
    return any(_needs_conversion(child) for child in schema.children())


def _to_cel(schema: Schema, value: Any) -> Any:
    """Return a value for rules: escaped field names, numbers as doubles, base64 as bytes."""
    if value is None or schema.native:
        return value
    if schema.kind in (STRUCT, MAP) and isinstance(value, dict):
        converted = {}
        for name, inner in value.items():
            child = schema.child(name)
            key = _escaped(name) if name in schema.properties else name
            converted[key] = inner if child is None else _to_cel(child, inner)
        return converted
    if schema.kind == LIST and schema.items is not None and isinstance(value, list):
        return [_to_cel(schema.items, inner) for inner in value]
    if schema.kind == NUMBER and isinstance(value, int):
        return float(value)
    if schema.kind == STRING and schema.format == "byte" and isinstance(value, str):
        try:
            return base64.b64decode(value)
        except (binascii.Error, ValueError):
            return value
    return value


def _escaped(name: str) -> str:
    if name in RESERVED_WORDS:
        return f"__{name}__"
    if not re.search(r"__|[./-]", name):
        return name
    return re.sub(r"__|[./-]", lambda found: dict(_ESCAPES)[found.group()], name)
