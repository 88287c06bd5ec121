"""Label and field selectors, parsed from query parameters or compiled from `LabelSelector` fields. Pure.

Label selectors follow k8s.io/apimachinery/pkg/labels, field selectors pkg/fields (`=`, `==` and `!=`). Parsed text is
cached. The fields of each kind are in `apiserver/verbs/filters.py`, affinity terms in `api/selectors.py`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.quantity import INT64_MAX, INT64_MIN
from federation.apimachinery.textcache import cache_short

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|\(|\)|,|>|<)|([^\s,()=!<>]+))")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", ">", "<"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FIELD_TERM = re.compile(r"(?:[^\\,]|\\.?)+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
"""The operators of a `LabelSelector` field; selector text and node affinity also have Gt and Lt."""

Labels = Mapping[str, str]


class SelectorError(BadRequest, ValueError):
    """A malformed selector; the message names the requirement."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression over labels: In, NotIn, Exists, DoesNotExist, Gt or Lt; `bound` is the operand of Gt and Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Labels) -> bool:
        """Return True if the labels satisfy the requirement; NotIn and DoesNotExist hold when the key is absent."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                number = _to_int64(value)
                if number is None:
                    return False
                return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; with `is_nothing` it matches no object at all."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    def matches(self, labels: Labels | None) -> bool:
        """Return True if the labels satisfy every requirement."""
        if self.is_nothing:
            return False
        present = labels or {}
        return all(requirement.matches(present) for requirement in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(is_nothing=True)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    field: str
    equal: bool
    value: str


@cache_short(1024)
def parse_label_selector(text: str) -> Selector:
    """Parse the text of a label selector; BadRequest in Kubernetes' words when it is malformed."""
    if not text.strip():
        return EVERYTHING
    return Selector(tuple(_Parser(text).requirements()))


@cache_short(1024)
def parse_field_selector(text: str) -> tuple[FieldTerm, ...]:
    r"""Parse a field selector: `metadata.name=x,status.phase!=Running`; `\` escapes `,`, `=` and itself."""
    terms = []
    for part in _FIELD_TERM.findall(text):
        found = re.match(r"([^=!]*?)(==|!=|=)(.*)", part, re.DOTALL)
        if not found:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append(FieldTerm(found[1].strip(), found[2] != "!=", _ESCAPE.sub(_unescaped, found[3])))
    return tuple(terms)


def escape_field_value(value: str) -> str:
    """Return a value as a field selector spells it."""
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescaped(found: re.Match[str]) -> str:
    if found[1] not in {"\\", ",", "="}:
        raise SelectorError(f"invalid field selector: invalid escape sequence: {found[0]}")
    return found[1]


def compile_label_selector(selector: Mapping[str, Any] | None, *, is_validated: bool = False) -> Selector:
    """Return the compiled form of a `LabelSelector` field: None matches nothing, {} everything.

    SelectorError when it is malformed. With `is_validated` only the operators are checked: keys and values of objects
    in the embedded API server were checked before they were stored.
    """
    if selector is None:
        return NOTHING
    expressions = selector.get("matchExpressions") or ()
    if is_validated:
        requirements = [
            Requirement(key, "In", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()
        ]
        for expression in expressions:
            operator = _checked_operator(expression, LABEL_OPERATORS)
            requirements.append(Requirement(expression["key"], operator, frozenset(expression.get("values") or ())))
        return Selector(tuple(requirements))
    return Selector(
        (
            *_equalities(selector.get("matchLabels") or {}),
            *(compile_requirement(expression, LABEL_OPERATORS) for expression in expressions),
        )
    )


def compile_label_map(labels: Labels | None) -> Selector:
    """Return the selector of a plain label map (nodeSelector, clusterSelector); empty matches everything."""
    return Selector(tuple(_equalities(labels or {})))


def compile_requirement(expression: Mapping[str, Any], operators: Collection[str]) -> Requirement:
    """Return the compiled form of one expression; SelectorError when it is malformed or its operator not allowed."""
    key = str(expression.get("key", ""))
    values: Sequence[str] = expression.get("values") or ()
    _check_key(key)
    operator = _checked_operator(expression, operators)
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"{key}: {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"{key}: {operator} takes no values")
    if operator in ("Gt", "Lt"):
        bound = _to_int64(values[0]) if len(values) == 1 else None
        if bound is None:
            raise SelectorError(f"{key}: {operator} needs exactly one integer")
        return Requirement(key, operator, bound=bound)
    for value in values:
        _check_value(key, value)
    return Requirement(key, operator, frozenset(values))


def _equalities(labels: Labels) -> Iterable[Requirement]:
    for key, value in labels.items():
        _check_key(key)
        _check_value(key, value)
        yield Requirement(key, "In", frozenset((value,)))


def _checked_operator(expression: Mapping[str, Any], operators: Collection[str]) -> str:
    operator = str(expression.get("operator", ""))
    if operator not in operators:
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    return operator


def _check_key(key: str) -> None:
    if nameformats.qualified_name(key):
        raise SelectorError(f"{key!r} is not a valid label key")


def _check_value(key: str, value: str) -> None:
    if nameformats.label_value(value):
        raise SelectorError(f"{key}: {value!r} is not a valid label value")


def _to_int64(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def format_label_selector(selector: Mapping[str, Any]) -> str:
    """Return a `LabelSelector` field as selector text, the form of `status.selector` of a Scale.

    As in Kubernetes, a malformed one is `<error>`.
    """
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    writers: dict[str, Callable[[str, str], str]] = {
        "In": lambda key, values: f"{key} in ({values})",
        "NotIn": lambda key, values: f"{key} notin ({values})",
        "Exists": lambda key, _: key,
        "DoesNotExist": lambda key, _: f"!{key}",
    }
    for expression in selector.get("matchExpressions") or ():
        writer = writers.get(expression.get("operator") or "")
        if writer is None:
            return "<error>"
        parts.append(writer(expression.get("key") or "", ",".join(sorted(expression.get("values") or ()))))
    return ",".join(parts)


class _Parser:
    """A recursive-descent parser over the tokens of one selector text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = self._scan()
        self._position = 0

    def _scan(self) -> list[str]:
        words, position = [], 0
        text = self._text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                raise self._error(f"found '{text[position:]}'")
            words.append(found[1] or found[2])
            position = found.end()
        return words

    def requirements(self) -> list[Requirement]:
        found = [self._requirement()]
        while self._peek() == ",":
            self._next()
            found.append(self._requirement())
        if self._peek():
            raise self._error(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return found

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._key(), "DoesNotExist")
        key = self._key()
        word = self._peek()
        if word in {"", ","}:
            return Requirement(key, "Exists")
        self._next()
        match word:
            case "=" | "==":
                return Requirement(key, "In", frozenset({self._value()}))
            case "!=":
                return Requirement(key, "NotIn", frozenset({self._value()}))
            case ">" | "<":
                return Requirement(key, "Gt" if word == ">" else "Lt", bound=self._integer())
            case "in" | "notin":
                return Requirement(key, "In" if word == "in" else "NotIn", self._values())
            case _:
                raise self._error(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self._next()
        if not key or key in _SYMBOLS:
            raise self._error(f"found '{key}', expected: identifier")
        if problems := nameformats.qualified_name(key):
            raise BadRequest(f'unable to parse requirement: <nil>: Invalid value: "{key}": {"; ".join(problems)}')
        return key

    def _value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise self._error(f"found '{value}', expected: identifier")
        return self._checked(value)

    def _integer(self) -> int:
        value = self._next()
        number = _to_int64(value)
        if number is None:
            raise BadRequest(
                f"unable to parse requirement: values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the"
                " value must be an integer"
            )
        return number

    def _values(self) -> frozenset[str]:
        if self._next() != "(":
            raise self._error("expected: '('")
        values = {self._set_member()}
        while (word := self._next()) == ",":
            values.add(self._set_member())
        if word != ")":
            raise self._error(f"found '{word}', expected: ',' or ')'")
        return frozenset(values)

    def _set_member(self) -> str:
        if self._peek() in {",", ")"}:
            return ""
        value = self._next()
        if not value or value in _SYMBOLS:
            raise self._error(f"found '{value}', expected: identifier")
        return self._checked(value)

    def _checked(self, value: str) -> str:
        if problems := nameformats.label_value(value):
            raise BadRequest(f'unable to parse requirement: values[0]: Invalid value: "{value}": {"; ".join(problems)}')
        return value

    def _peek(self) -> str:
        return self._words[self._position] if self._position < len(self._words) else ""

    def _next(self) -> str:
        word = self._peek()
        self._position += 1
        return word

    def _error(self, problem: str) -> BadRequest:
        return BadRequest(f"unable to parse requirement: {problem} in selector '{self._text}'")
