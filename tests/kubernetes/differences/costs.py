"""Definitions whose rules are cheap or dear by the limits of their schema: what one API server refuses, the other does.

Each schema has lists, maps and texts with and without limits, up to three deep; each rule reads them in nested loops and
with functions that cost by the length of what they get. Both servers name the factor by which an estimate exceeds the
budget, so a wrong estimate shows even where both refuse.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from tests.kubernetes.differences.expressions import CRDS, definition
from tests.kubernetes.differences.requests import Request, request
from tests.support.rest import Object

COUNT: Final = 400
_LIMITS: Final = (None, None, 1, 10, 64, 1000, 50_000)
_FORMATS: Final = (None, None, None, "date", "date-time", "duration", "byte", "uuid")
_LOOPS: Final = ("all", "exists", "exists_one")
_TEXTS: Final = (
    *("{v}.matches('^[a-z]+$')", "{v} == 'x'", "{v}.contains('ab')", "{v}.startsWith('a')", "{v}.endsWith('a')"),
    *("{v}.size() < 5", "{v}.split(',').all(p, p == 'a')", "{v}.lowerAscii() == 'a'", "{v}.replace('a', 'b') == 'c'"),
    *("{v}.find('[a-z]') == ''", "({v} + {v}).matches('a')", "{v}.trim() == 'x'", "{v}.substring(1) == ''"),
    *("{v} < 'b'", "{v} in ['a', 'b']", "{v}.indexOf('a') > 1", "{v}.findAll('a').size() > 1"),
    *(
        "{v}.replace('', 'ab').matches('a+')",
        "{v}.replace({v}, {v}).contains('abcdefghijklm')",
        "{v}.split(',')[0] == {v}",
    ),
    *("ip({v}).family() == 4", "cidr({v}).containsIP({v})", "ip.isCanonical({v})", "url({v}).getPort() == '1'"),
    *("['a', {v}].all(l, l == {v})", "({v} == 'a' ? {v} : 'b').matches('a+')", "{v}.findAll('a').all(f, f == {v})"),
    *("isURL({v})", "quantity({v}).isGreaterThan(quantity('1'))", "isIP({v})", "{v}.charAt(0) == 'a'"),
)
_NUMBERS: Final = ("{v} > 1", "{v} + 1 == 3", "{v} in [1, 2]", "string({v}) == '1'")
_TRUTHS: Final = ("{v}", "!{v}", "{v} == true")


class Maker:
    """Makes one schema and a rule for it from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names = 0

    def schema(self, depth: int) -> Object:
        """Return a schema of so many levels at most."""
        choose = self._random.choice
        kind = choose(("list", "list", "map", "object") if depth else ("text", "text", "text", "number", "truth"))
        if kind == "list":
            return {"type": "array", "items": self.schema(depth - 1), **self._limit("maxItems")}
        if kind == "map":
            return {"type": "object", "additionalProperties": self.schema(depth - 1), **self._limit("maxProperties")}
        if kind == "object":
            fields = {name: self.schema(self._random.randint(0, depth - 1)) for name in ("a", "b")}
            required = {"required": ["a"]} if self._random.random() < 0.5 else {}
            return {"type": "object", "properties": fields, **required}
        if kind == "text":
            format_ = choose(_FORMATS)
            return {"type": "string", **self._limit("maxLength"), **({"format": format_} if format_ else {})}
        return {"type": "integer" if kind == "number" else "boolean"}

    def _limit(self, name: str) -> Object:
        limit = self._random.choice(_LIMITS)
        return {} if limit is None else {name: limit}

    def test(self, value: str, schema: Object, depth: int = 2) -> str:
        """Return an expression about a value that is true or false."""
        draw = self._random.random()
        if depth and draw < 0.2:
            one, other = (self.test(value, schema, depth - 1) for _ in range(2))
            return self._random.choice((f"({one} && {other})", f"({one} || {other})", f"({one} ? {other} : {one})"))
        match schema["type"]:
            case "array":
                return self._of_list(value, schema, depth)
            case "object" if "properties" in schema:
                name, found = self._random.choice(list(schema["properties"].items()))
                inner = self.test(f"{value}.{name}", found, depth)
                return inner if name in schema.get("required", ()) else f"(!has({value}.{name}) || {inner})"
            case "object":
                return self._of_map(value, schema, depth)
            case "string" if schema.get("format") in ("date", "date-time"):
                return f"{value}.getFullYear() > 2000"
            case "string" if schema.get("format") == "duration":
                return f"{value} > duration('1s')"
            case "string" if schema.get("format") == "byte":
                return f"{value}.size() > 3"
            case "string":
                return self._random.choice(_TEXTS).format(v=value)
            case "integer":
                return self._random.choice(_NUMBERS).format(v=value)
        return self._random.choice(_TRUTHS).format(v=value)

    def _variable(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _of_list(self, value: str, schema: Object, depth: int) -> str:
        name, items = self._variable(), schema["items"]
        inner = self.test(name, items, depth)
        return self._random.choice(
            (
                *(f"{value}.{loop}({name}, {inner})" for loop in _LOOPS),
                f"{value}.filter({name}, {inner}).size() > 1",
                f"{value}.map({name}, {inner}).exists(b, b)",
                f"{value}.size() < 5",
                f"{value} == {value}",
                f"({value} + {value}).all({name}, {inner})",
                f"{value}.filter({name}, {inner}).all({name}, {inner})",
                f"{value}.map({name}, {name}).exists({name}, {inner})",
                f"({value}.size() > 3 ? {value} : {value}).exists({name}, {inner})",
                self.test(f"{value}[0]", items, depth),
            )
        )

    def _of_map(self, value: str, schema: Object, depth: int) -> str:
        name = self._variable()
        inner = self.test(f"{value}[{name}]", schema["additionalProperties"], depth)
        return self._random.choice(
            (
                *(f"{value}.{loop}({name}, {inner})" for loop in _LOOPS),
                f"{value}.all({name}, {name}.matches('a+'))",
                f"'a' in {value}",
                f"{value}.size() < 5",
                f"{value} == {value}",
            )
        )


def cost_requests() -> Iterator[Request]:
    """Yield dry runs of definitions with a rule at some depth of a schema."""
    for seed in range(COUNT):
        maker = Maker(seed)
        schema = maker.schema(1 + seed % 3)
        at, depth = schema, 0
        while depth < seed % 2 and ("items" in at or "additionalProperties" in at):  # a rule that runs for each item
            at, depth = at.get("items") or at["additionalProperties"], depth + 1
        at["x-kubernetes-validations"] = [{"rule": maker.test("self", at)}]
        body = definition("checks", {"value": schema})
        yield request(f"cost: {seed}", "POST", CRDS.root, body, dryRun="All")
