"""Semantic mutations of a module: each is one small replacement of its text, as a wrong edit would make it.

Comparisons, `and`/`or`/`not`, arithmetic, numbers and booleans, conditions, statements without a value, early ends of
functions and loops, keyword arguments. Not mutated: strings, annotations, decorators, assertions (`strict=True` is one:
it says that lengths are equal), what is raised, and log calls. `reach.py` knows the tests of a mutation, `run.py` runs
them and reports.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_OPPOSITES = {"min": "max", "any": "all", "union": "intersection", "floor": "ceil", "issubset": "issuperset"}
_OPPOSITES |= {right: left for left, right in _OPPOSITES.items()}
_SKIPPED_FIELDS = {"decorator_list", "annotation", "returns", "type_params", "bases", "op", "ops", "ctx"}
_LOGGERS = ("_log", "log", "logger", "_LOG")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mutation is: its statement's lines, and the function that can be exchanged ("" outside of functions)."""

    lines: tuple[int, int] = (1, 1)
    scope: str = ""
    function: str = ""
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class Mutation:
    """A replacement of the bytes `start:end` of a file."""

    path: str
    place: Place
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """Return the mutated text of the module."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    @property
    def key(self) -> str:
        """The name in `equivalent.txt`: without line numbers, which every edit moves."""
        change = f"{' '.join(self.before.split())} => {' '.join(self.after.split())}"
        return f"{self.path} {self.place.function or '-'}: {change}"


def mutations_of(path: Path, name: str) -> list[Mutation]:
    """Return all mutations of a file."""
    source = path.read_bytes()
    finder = _Finder(source, name)
    return list(finder.walk(ast.parse(source), Place()))


class _Finder:
    def __init__(self, source: bytes, name: str) -> None:
        self._source, self._name, self._starts = source, name, [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def walk(self, node: ast.AST, place: Place) -> Iterator[Mutation]:
        match node:
            case ast.Assert() | ast.Raise() | ast.JoinedStr() | ast.keyword(arg="strict"):
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self.walk(node.args, replace(place, lines=(node.lineno, node.body[0].lineno - 1)))
                scope = f"{place.scope}{node.name}"
                first = min(decorator.lineno for decorator in [*node.decorator_list, node])
                inside = place if place.function else replace(place, function=scope, first_line=first)
                yield from self._block(node.body, inside)
                return
            case ast.ClassDef():
                inside = place if place.function else replace(place, scope=f"{place.scope}{node.name}.")
                yield from self._block(node.body, inside)
                return
        if isinstance(node, ast.stmt):
            if _is_text_or_log(node):
                return
            head = getattr(node, "test", None) or getattr(node, "iter", None) or node
            last = node.lineno if head is node and hasattr(node, "body") else head.end_lineno
            place = replace(place, lines=(node.lineno, last or node.lineno))
        yield from self._of(node, place)
        for field, value in ast.iter_fields(node):
            if field not in _SKIPPED_FIELDS:
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        yield from self.walk(child, place)

    def _block(self, body: list[ast.stmt], place: Place) -> Iterator[Mutation]:
        for statement in body:
            yield from self.walk(statement, place)

    def _mutation(self, node: ast.expr | ast.stmt | ast.keyword, place: Place, kind: str, after: str) -> Mutation:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        before = self._source[start:end].decode()
        return Mutation(self._name, place, node.lineno, kind, start, end, before, after)

    def _of(self, node: ast.AST, place: Place) -> Iterator[Mutation]:
        match node:
            case ast.expr():
                for kind, other in _expressions(node):
                    yield self._mutation(node, place, kind, f"({ast.unparse(other)})")
            case ast.If() | ast.While() if not isinstance(node.test, ast.Compare | ast.Constant):
                negated = ast.UnaryOp(ast.Not(), node.test)
                yield self._mutation(node.test, place, "negated condition", f"({ast.unparse(negated)})")
            case ast.keyword(arg=str()):
                yield self._mutation(node, place, "dropped keyword", "**{}")
        if isinstance(node, ast.If):
            for block in (node.body, node.orelse):
                if block and isinstance(block[-1], ast.Return | ast.Continue | ast.Break | ast.Raise):
                    lines = (block[-1].lineno, block[-1].end_lineno or block[-1].lineno)
                    yield self._mutation(block[-1], replace(place, lines=lines), "removed early end", "pass")
        if place.function and isinstance(node, ast.stmt) and _has_effect_only(node):
            yield self._mutation(node, place, "removed statement", "pass")


def _is_text_or_log(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)))):
            return name in _LOGGERS
    return False


def _has_effect_only(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.Expr(value=ast.Await()) | ast.AugAssign():
            return True
        case ast.Delete(targets=[ast.Attribute() | ast.Subscript()]):  # a local name only says that it is not used
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a wrong edit writes in place of an expression."""
    match node:
        case ast.Compare(left=left, ops=[op, *ops], comparators=comparators) if type(op) in _COMPARISONS:
            yield "comparison", ast.Compare(left, [_COMPARISONS[type(op)](), *ops], comparators)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for dropped in range(len(values)):
                kept = values[:dropped] + values[dropped + 1 :]
                yield "dropped operand", kept[0] if len(kept) == 1 else ast.BoolOp(op, kept)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "removed not", operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _has_text(node):
            yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "swapped branches", ast.IfExp(test, orelse, body)
        case ast.Call(func=func, args=args, keywords=keywords) if (other := _opposite(func)) is not None:
            yield "opposite function", ast.Call(other, args, keywords)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for number, generator in enumerate(node.generators):
                if generator.ifs:
                    bare = ast.comprehension(generator.target, generator.iter, [], generator.is_async)
                    others = [*node.generators[:number], bare, *node.generators[number + 1 :]]
                    fields = dict(ast.iter_fields(node))
                    yield "dropped condition", type(node)(**{**fields, "generators": others})


def _has_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _opposite(func: ast.expr) -> ast.expr | None:
    match func:
        case ast.Name(id=name) if name in _OPPOSITES:
            return ast.Name(_OPPOSITES[name])
        case ast.Attribute(value=value, attr=name) if name in _OPPOSITES:
            return ast.Attribute(value, _OPPOSITES[name])
    return None
