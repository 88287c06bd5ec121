"""`x-kubernetes-validations`: a custom resource's rules, compiled once per version and checked on every write. Pure.

A tree of the schema's nodes that have rules at or below them mirrors the object, so the rest of it is never visited.
A rule that uses `oldSelf` is a transition rule: it runs where an old value is known (fields, map entries, items of
list-maps). Other rules are not asked again about a value that did not change. `programs.py` evaluates.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from federation.base.errors import cause
from federation.registry.cel.programs import CompileError, EvaluationError, Program, compile_expression
from federation.registry.jsonequality import is_same
from federation.registry.schema.fielditems import by_key, key_of
from federation.registry.schema.model import LIST, MAP, NUMBER, STRING, STRUCT, Schema
from federation.registry.validation.fields import Causes

_NOTHING: Final = object()
_INVALID: Final = "FieldValueInvalid"
_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid", "FieldValueNotSupported"}
)
_KEYWORDS: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule."""

    text: str
    program: Program
    is_transition: bool
    takes_absent: bool
    """Whether `oldSelf` is an optional value, so that the rule also runs where there is no old one."""
    message: str
    message_program: Program | None
    reason: str
    field_path: str


@dataclass(slots=True)
class Rules:
    """The rules at one place of the schema and below.

    They are compiled when the first value is there that they are about: who never writes one does not pay for the
    library. `broken` says why they cannot be run at all, which only those of a definition stored unchecked cannot.
    """

    schema: Schema
    fields: dict[str, "Rules"] = field(default_factory=dict)
    items: "Rules | None" = None
    additional: "Rules | None" = None
    is_converted: bool = False
    rules: tuple[Rule, ...] | None = None
    broken: str = ""

    def check(self, obj: Any, old: Any, found: Causes, path: str = "") -> Causes:
        """Return what the rules refuse in `obj`; `found` are the schema's complaints, some of which end the check."""
        if any(known["reason"] in _BLOCKING for known in found):
            return [cause(_INVALID, f"Invalid value: null: {_UNCHECKED}", "<nil>")]
        causes: Causes = []
        self._check(obj, _NOTHING if old is None else old, path, causes)
        return causes

    def _check(self, value: Any, old: Any, path: str, causes: Causes) -> None:
        if value is None:
            return
        if old is None:
            old = _NOTHING
        if self.schema.validations:
            self._run(value, old, path, causes)
        if value.__class__ is dict:
            related = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                below = self.fields.get(name)
                if below is not None:
                    below._check(inner, related.get(name, _NOTHING), f"{path}.{name}" if path else name, causes)
                elif self.additional is not None and name not in self.schema.properties:
                    self.additional._check(inner, related.get(name, _NOTHING), f"{path}[{name}]", causes)
        elif self.items is not None and value.__class__ is list:
            before = by_key(self.schema, old)
            for index, inner in enumerate(value):
                known = before.get(key_of(self.schema, inner), _NOTHING) if before else _NOTHING
                self.items._check(inner, known, f"{path}[{index}]", causes)

    def _compiled(self) -> tuple[Rule, ...]:
        if self.rules is None:
            try:
                self.rules = tuple(compile_rule(raw) for raw in self.schema.validations)
            except CompileError as error:
                self.rules, self.broken = (), str(error)
            self.is_converted = _needs_conversion(self.schema)
        return self.rules

    def _run(self, value: Any, old: Any, path: str, causes: Causes) -> None:
        rules = self._compiled()
        if self.broken:
            causes.append(_refusal(self.schema, _INVALID, self.broken, path))
        is_unchanged = old is not _NOTHING and is_same(old, value)
        data: dict[str, Any] = {}
        for rule in rules:
            if rule.is_transition:
                if old is _NOTHING and not rule.takes_absent:
                    continue
            elif is_unchanged:
                continue
            if not data:
                data = self._data(value, old)
            if refused := _evaluate(rule, data):
                where = path if not rule.field_path else f"{path}.{rule.field_path}" if path else rule.field_path
                causes.append(_refusal(self.schema, rule.reason, refused, where))

    def _data(self, value: Any, old: Any) -> dict[str, Any]:
        if self.is_converted:
            value = _converted(self.schema, value)
            old = old if old is _NOTHING else _converted(self.schema, old)
        if old is _NOTHING:
            return {"self": value, "oldSelf": None, "knownOld": []}
        return {"self": value, "oldSelf": old, "knownOld": [old]}


def compile_rules(schema: Schema) -> Rules | None:
    """Return the rules of a custom resource's schema, None when it has none at all."""
    if schema.native:
        return None
    below = {name: rules for name, child in schema.properties.items() if (rules := compile_rules(child))}
    items = compile_rules(schema.items) if schema.items is not None else None
    additional = compile_rules(schema.additional) if schema.additional is not None else None
    if not (schema.validations or below or items or additional):
        return None
    return Rules(schema, fields=below, items=items, additional=additional)


def compile_rule(raw: Mapping[str, Any]) -> Rule:
    """Compile one entry of `x-kubernetes-validations`; CompileError."""
    text = str(raw["rule"])
    takes_absent = bool(raw.get("optionalOldSelf"))
    try:
        program, is_transition = compile_expression(text, ("self",), returns="BOOL"), False
    except CompileError:
        program, is_transition = _with_old(text, "BOOL", takes_absent=takes_absent), True
    expression = raw.get("messageExpression") or ""
    return Rule(
        text=text.strip(),
        program=program,
        is_transition=is_transition,
        takes_absent=takes_absent,
        message=raw.get("message") or "",
        message_program=_with_old(expression, "STRING", takes_absent=takes_absent) if expression else None,
        reason=raw.get("reason") or _INVALID,
        field_path=str(raw.get("fieldPath") or "").removeprefix("."),
    )


def _with_old(text: str, returns: str, *, takes_absent: bool) -> Program:
    if not takes_absent:
        return compile_expression(text, ("self", "oldSelf"), returns=returns)
    # Data cannot hold an optional value: it is made where the expression begins, whose lines keep their numbers.
    known = "size(knownOld) == 0 ? optional.none() : optional.of(knownOld[0])"
    return compile_expression(f"cel.bind(oldSelf, {known}, {text}\n)", ("self", "knownOld"), returns=returns)


def _evaluate(rule: Rule, data: Mapping[str, Any]) -> str:
    """Return why the rule refuses the value, "" when it does not."""
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
            message = ""  # as in kube-apiserver: the fixed message stands in
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


def _converted(schema: Schema, value: Any) -> Any:
    """Return a value as rules see it: field names that CEL can write, numbers as doubles, base64 as bytes."""
    if value is None or schema.native:
        return value
    if schema.kind in (STRUCT, MAP) and isinstance(value, dict):
        converted = {}
        for name, inner in value.items():
            child = schema.child(name)
            key = _escaped(name) if name in schema.properties else name
            converted[key] = inner if child is None else _converted(child, inner)
        return converted
    if schema.kind == LIST and schema.items is not None and isinstance(value, list):
        return [_converted(schema.items, inner) for inner in value]
    if schema.kind == NUMBER and isinstance(value, int):
        return float(value)
    if schema.kind == STRING and schema.format == "byte" and isinstance(value, str):
        try:
            return base64.b64decode(value)
        except (binascii.Error, ValueError):
            return value
    return value


def _escaped(name: str) -> str:
    if name in _KEYWORDS:
        return f"__{name}__"
    if not re.search(r"__|[./-]", name):
        return name
    return re.sub(r"__|[./-]", lambda found: dict(_ESCAPES)[found.group()], name)
