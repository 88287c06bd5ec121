"""Label and field selectors: the text of a query parameter, parsed once, then asked per object.

Label selectors follow k8s.io/apimachinery/pkg/labels (equality and set terms); field selectors know `=`, `==` and `!=`.
Parsing results are remembered by text. Which fields a kind offers stands in `filters.py`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from federation.base.errors import BadRequest
from federation.registry.validation import names

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|\(|\)|,|>|<)|([^\s,()=!<>]+))")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", ">", "<"})

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; `operator` is one of in, notin, exists, !, gt, lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        """Tell whether the labels satisfy this term."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            number, bound = int(value or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return number > bound if self.operator == "gt" else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All terms must hold; no terms match everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels | None) -> bool:
        """Tell whether the labels satisfy every term."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    field: str
    equal: bool
    value: str


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Parse a label selector; BadRequest in Kubernetes' words when it is broken."""
    if not text.strip():
        return LabelSelector()
    parser = _Parser(text)
    return LabelSelector(tuple(parser.requirements()))


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    r"""Parse a field selector: `metadata.name=x,status.phase!=Running`; `\` escapes `,`, `=` and itself."""
    terms = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        found = re.match(r"([^=!]*?)(==|!=|=)(.*)", part, re.DOTALL)
        if not found:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\(.)", r"\1", found[3])
        terms.append(FieldTerm(found[1].strip(), found[2] != "!=", value))
    return tuple(terms)


def from_mapping(selector: Mapping[str, Any]) -> LabelSelector:
    """Return the selector of an object's `LabelSelector` field: matchLabels and matchExpressions."""
    requirements = [
        Requirement(key, "in", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    for expression in selector.get("matchExpressions") or ():
        operator = operators.get(expression.get("operator", ""))
        if operator is None:
            raise BadRequest(f'"{expression.get("operator")}" is not a valid label selector operator')
        requirements.append(Requirement(expression["key"], operator, frozenset(expression.get("values") or ())))
    return LabelSelector(tuple(requirements))


def to_text(selector: Mapping[str, Any]) -> str:
    """Return a `LabelSelector` field as selector text, as `status.selector` of a Scale shows it."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    writers: dict[str, Callable[[str, str], str]] = {
        "In": lambda key, values: f"{key} in ({values})",
        "NotIn": lambda key, values: f"{key} notin ({values})",
        "Exists": lambda key, _: key,
        "DoesNotExist": lambda key, _: f"!{key}",
    }
    for expression in selector.get("matchExpressions") or ():
        writer = writers[expression["operator"]]
        parts.append(writer(expression["key"], ",".join(sorted(expression.get("values") or ()))))
    return ",".join(parts)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words = self._scan()
        self._at = 0

    def _scan(self) -> list[str]:
        words, at = [], 0
        text = self._text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise self._error(f"found '{text[at:]}'")
            words.append(found[1] or found[2])
            at = found.end()
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
            return Requirement(self._key(), "!")
        key = self._key()
        word = self._peek()
        if word in {"", ","}:
            return Requirement(key, "exists")
        self._next()
        if word in {"=", "=="}:
            return Requirement(key, "in", frozenset({self._value()}))
        if word == "!=":
            return Requirement(key, "notin", frozenset({self._value()}))
        if word in {">", "<"}:
            return Requirement(key, "gt" if word == ">" else "lt", frozenset({self._integer()}))
        if word in {"in", "notin"}:
            return Requirement(key, word, self._values())
        raise self._error(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self._next()
        if not key or key in _SYMBOLS:
            raise self._error(f"found '{key}', expected: identifier")
        if problems := names.qualified_name(key):
            raise BadRequest(f'unable to parse requirement: <nil>: Invalid value: "{key}": {"; ".join(problems)}')
        return key

    def _value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise self._error(f"found '{value}', expected: identifier")
        return self._checked(value)

    def _integer(self) -> str:
        value = self._next()
        if not re.fullmatch(r"-?\d+", value):
            raise BadRequest(
                f"unable to parse requirement: values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the"
                " value must be an integer"
            )
        return value

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
        if problems := names.label_value(value):
            raise BadRequest(f'unable to parse requirement: values[0]: Invalid value: "{value}": {"; ".join(problems)}')
        return value

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _error(self, what: str) -> BadRequest:
        return BadRequest(f"unable to parse requirement: {what} in selector '{self._text}'")
