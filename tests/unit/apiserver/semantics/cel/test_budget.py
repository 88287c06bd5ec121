"""The bound of an evaluation is never below what the evaluation makes, and simple expressions need no bound at all."""

import gc
from typing import Any

import pytest

from federation.apiserver.semantics.cel.bounds import Bound, count_bytes, join
from federation.apiserver.semantics.cel.budget import ADMISSION_LIMIT, TENANT_LIMIT, Cost, Limit, estimate
from federation.apiserver.semantics.cel.checkedexpr import parse_checked_expr
from federation.apiserver.semantics.cel.programs import CompileError, OutOfBudget, check_cost, compile_expression

DATA = {
    "s": "x" * 1000,
    "e": "é" * 100,
    "n": 5,
    "l": [f"item-{index}" for index in range(50)],
    "o": [{"name": f"n{index}", "tags": ["a", "b"]} for index in range(20)],
    "m": {f"k{index}": "v" * index for index in range(30)},
}


def cost_of(expression: str, data: Any = DATA) -> Cost:
    program = compile_expression(expression, ("d",))
    tree, _ = parse_checked_expr(program.serialized())
    return estimate(tree, {"d": Bound.of((data,))}, is_result_data=False)


def result_bound(expression: str) -> int:
    """Return the bound of the result: what the conversion of the result adds to the memory, a quarter of it."""
    program = compile_expression(expression, ("d",))
    tree, _ = parse_checked_expr(program.serialized())
    names = {"d": Bound.of((DATA,))}
    without = estimate(tree, names, is_result_data=False)
    return int((estimate(tree, names, is_result_data=True).bytes - without.bytes) / 4)


@pytest.mark.parametrize(
    "expression",
    [
        "d",
        "d.s + d.e + d.s",
        "d.s.replace('x', 'yy')",
        "d.s.replace('', 'abc')",
        "d.s.split('')",
        "d.l.join(d.s)",
        "'%s and %s'.format([d.s, d.l])",
        "'%x'.format([d.s])",
        "'%.999f'.format([1.5])",
        "strings.quote(d.e + '\\n\\n')",
        "base64.encode(bytes(d.s))",
        "d.l.map(x, x + d.s)",
        "d.m.map(k, d.m[k])",
        "d.m.map(k, {k: d.m[k] + d.m[k]})",
        "d.o.filter(o, o.name != 'n1').map(o, o.tags + o.tags)",
        "d.o.map(o, o.tags.map(t, t + o.name))",
        "d.s.findAll('x')",
        "d.n > 3 ? d.l : d.o",
        "[d, d, d]",
        "cel.bind(a, [d.s, d.s], cel.bind(b, [a, a], [b, b]))",
        "d.l[0] + d.l[1]",
        "d.l + d.l.map(x, x)",
        "d.?missing.orValue(d.s)",
        "d.o[?0].orValue({})",
        "d.l.max()",
        "d.s.substring(10).upperAscii()",
        "string(d.n)",
    ],
)
def test_no_result_is_larger_than_its_bound(expression: str) -> None:
    value = compile_expression(expression, ("d",)).evaluate({"d": DATA})
    assert count_bytes(value) <= result_bound(expression) + 1


@pytest.mark.parametrize(
    "expression",
    [
        "d.n <= 5",
        "has(d.m) && d.m.k1 == 'v'",
        "d.o.all(o, o.name.startsWith('n') && o.tags.size() < 5)",
        "d.l.exists(x, x == 'a' || x == 'b')",
    ],
)
def test_common_expressions_are_within_the_limit_for_all_data(expression: str) -> None:
    program = compile_expression(expression, ("d",), limit=TENANT_LIMIT)
    assert program.is_cheap
    check_cost(program)


@pytest.mark.parametrize(
    "expression",
    [
        "d.o.all(o, o.tags.all(t, t.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')))",
        "d.l.map(x, x + '/').all(x, x.startsWith(d.s + '/'))",
        "d.s.matches('^' + d.e + '$')",
        "d.o.filter(o, o.name in d.l).size() == 0",
    ],
)
def test_expressions_of_real_policies_may_be_written(expression: str) -> None:
    check_cost(compile_expression(expression, ("d",), limit=ADMISSION_LIMIT))


def test_fields_and_items_have_the_sizes_of_the_data() -> None:
    small, large = cost_of("d.l[0] + d.n"), cost_of("d.s + d.s")
    assert small.bytes < 100
    assert large.bytes >= 2000
    assert cost_of("d.missing.map(x, d.s + d.s).size()").bytes < 100
    assert cost_of("d.o.map(o, o.name + o.name).size()").bytes < cost_of("d.o.map(o, d.s + d.s).size()").bytes


def test_an_expression_may_cost_what_its_limit_allows() -> None:
    expression = "(d.s + d.s).size() == 2000"
    assert compile_expression(expression, ("d",), limit=Limit(1000, 5000)).evaluate({"d": DATA}) is True
    with pytest.raises(OutOfBudget, match=r"memory of 2 032 bytes exceeds the limit of 1000 bytes"):
        compile_expression(expression, ("d",), limit=Limit(1000, 1000)).evaluate({"d": DATA})
    with pytest.raises(OutOfBudget, match=r"estimated cost of .* ms exceeds the limit of 0.001 ms"):
        compile_expression(expression, ("d",), limit=Limit(0.001, 5000)).evaluate({"d": DATA})


def test_a_pattern_counts_with_the_size_of_its_program() -> None:
    simple, large = cost_of("d.s.matches('^[a-z]+$')"), cost_of("d.s.matches('(ab|a|b){1,100}c')")
    too_large = cost_of("d.s.matches('(' + '(ab|a|b){1,100}c' + '){1,9}')")
    assert simple.time_ms < 1 < large.time_ms < too_large.time_ms
    with pytest.raises(CompileError, match=r"exceeds the limit of 50 ms"):
        check_cost(compile_expression(r"'x'.matches('(ab|a|b)' + '{1,100}c' + '(ab|a|\\p{L}){1,500}c')", ()))


@pytest.mark.slow("fills memory to see that it is given back")
def test_lists_that_functions_got_are_not_kept() -> None:
    """The runtime keeps a reference to each argument; what counts is that it is empty."""
    program = compile_expression("d.o.map(o, o.tags).min() == ['a', 'b'] || d.o.indexOf(d.l) == 1", ("d",))
    assert program.evaluate({"d": {"o": [{"tags": ["a", "b"]}], "l": []}}) is True
    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, list) and found == [["a", "b"]]]
    assert kept == []


def test_the_bound_of_alternatives_covers_all_of_them() -> None:
    known = join([Bound.of(("x" * 10,)), Bound.of((["y"],))])
    assert (known.size, known.count, known.items().size) == (33, 1, 17)
    computed = join([Bound(100), Bound(50, 7, Bound(5))])
    assert (computed.size, computed.count, computed.items().size) == (100, 7, 5)
    unknown = join([Bound(50, 7, Bound(5)), Bound(100, 3)])
    assert unknown.items().size == 100
    many = join([Bound.of(tuple(range(15_000))), Bound.of(tuple(range(15_000, 30_000)))])
    assert many.values is None
    assert many.size == 16
