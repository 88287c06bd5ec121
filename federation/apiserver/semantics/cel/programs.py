"""Compile and evaluate CEL expressions; the only module that imports the CEL runtime. Pure.

An expression runs only if the bound of its time and memory for these data is within its limit (`budget.py`), because
the runtime has no limit of memory and nothing else runs until it returns.

The runtime (cel-cpp) is loaded with the first expression, so a server without rules does not pay for it. Data are plain
JSON values of type `dyn`, so an unknown field is an evaluation error, not a compile error. Times are strings until
`timestamp()` parses them. The runtime has no comprehensions with two variables. `functions.py` has Kubernetes' library.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from federation.apimachinery.errors import FederationError
from federation.apiserver.semantics.cel import arguments
from federation.apiserver.semantics.cel.bounds import Bound
from federation.apiserver.semantics.cel.budget import (
    ADMISSION_LIMIT,
    Cost,
    Limit,
    assumed_data,
    estimate,
    largest_data,
)
from federation.apiserver.semantics.cel.checkedexpr import Node, parse_checked_expr
from federation.apiserver.semantics.cel.optionals import find_misplaced_optional

_ENVIRONMENTS_MAX: Final = 64
"""Sets of variables whose environments are cached; policies with typed variables have sets of their own."""
_PLAIN_TYPES: Final = frozenset({"BOOL", "INT", "UINT", "DOUBLE", "NULL", "TIMESTAMP", "DURATION", "TYPE"})
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
"""kube-apiserver's message when the rules or policies of one request have used their budget."""
_TOO_COSTLY: Final = "operation cancelled: actual cost limit exceeded"


class CompileError(FederationError):
    """The expression does not compile; the message is the compiler's."""


class EvaluationError(FederationError):
    """The expression failed for these data, for example because a key is absent."""


class OutOfBudget(EvaluationError):
    """The evaluation exceeded its number of steps."""


class Program:
    """A compiled expression."""

    __slots__ = ("_expression", "_is_cheap", "_limit", "_names", "_tree", "returns")

    def __init__(self, expression: Any, names: tuple[str, ...], limit: Limit) -> None:
        """Raise RuntimeError for an expression whose type has no name, for example a map with keys of bytes."""
        self._expression = expression
        self._names = names
        self._limit = limit
        self._tree: Node | None = None
        self._is_cheap: bool | None = None
        self.returns = str(expression.return_type())
        """The static type: BOOL, STRING, DYN (known only at run time) and so on."""

    @property
    def is_cheap(self) -> bool:
        """Whether the expression is within its limit for all data."""
        if self._is_cheap is None:
            data = largest_data()
            self._is_cheap = not self._cost(dict.fromkeys(self._names, data)).excess(self._limit)
        return self._is_cheap

    def find_excess(self) -> str:
        """Return how the expression exceeds its limit for ordinary data, "" if it does not."""
        return self._cost(dict.fromkeys(self._names, assumed_data())).excess(self._limit)

    def _cost(self, names: Mapping[str, Bound]) -> Cost:
        if self._tree is None:
            self._tree, _ = parse_checked_expr(self.serialized())
        return estimate(self._tree, names, is_result_data=self.returns not in _PLAIN_TYPES)

    def serialized(self) -> bytes:
        """Return the expression as a CheckedExpr message for `checkedexpr.py`."""
        found: bytes = self._expression.serialize()
        return found

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        """Return the value as plain Python; EvaluationError or OutOfBudget."""
        if not self.is_cheap:
            bounds = {name: Bound.of((value,)) for name, value in data.items()}
            if excess := self._cost(bounds).excess(self._limit):
                raise OutOfBudget(f"operation cancelled: {excess}")
        try:
            found = self._expression.eval(data=data)
            value = found.plain_value()
        except RuntimeError as error:
            # The runtime stops a program after 10,000 loop iterations.
            if "Iteration budget" in str(error):
                raise OutOfBudget(_TOO_COSTLY) from error
            raise EvaluationError(str(error)) from error
        except (TypeError, SystemError) as error:
            raise EvaluationError("the value has no JSON form") from error
        finally:
            arguments.release()
        if str(found.type()) == "ERROR":
            raise EvaluationError(str(value).partition(": ")[2] or str(value))
        return value


def compile_expression(
    text: str, variables: tuple[str, ...], *, returns: str = "", limit: Limit = ADMISSION_LIMIT
) -> Program:
    """Compile `text` over `variables`; CompileError, also if its static type is neither `returns` nor DYN.

    Variables are dynamic, unless they name a type of CEL, such as `size:INT` or `names:LIST(STRING)`.
    """
    names = tuple(entry.partition(":")[0] for entry in variables)
    try:
        # Fields of an object with their types are those of one definition, and would displace others from the cache.
        environment = _new_environment if any("." in name for name in names) else _environment
        program = Program(environment(variables).compile(text), names, limit)
    except RuntimeError as error:
        message = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        raise CompileError(f"compilation failed: {message}") from error
    if ("optional" in text or "?" in text) and (at := find_misplaced_optional(program.serialized())) is not None:
        problem = "an optional value cannot be stored in a list or map, or passed to a function; use orValue()"
        raise CompileError(f"compilation failed: {format_error_at(text, at, problem)}")
    if returns and program.returns not in {returns, "DYN"}:
        raise CompileError(f"must evaluate to {returns.lower()}")
    return program


def check_cost(program: Program) -> None:
    """Raise CompileError for an expression that exceeds its limit for ordinary data; for expressions being written."""
    if excess := program.find_excess():
        raise CompileError(excess)


def format_error_at(text: str, at: int, problem: str) -> str:
    """Return a problem at an offset of an expression in the format of CEL's compiler."""
    before = text[:at]
    column = at - (before.rfind("\n") + 1)
    line = text.split("\n")[before.count("\n")]
    place = f"<input>:{before.count(chr(10)) + 1}:{column + 1}"
    return f"ERROR: {place}: {problem}\n | {line}\n | {'.' * column}^"


def _to_type(types: Any, text: str) -> Any:
    """Return the CEL type of a text such as INT, LIST(STRING) or MAP(LIST(INT)), whose keys are strings."""
    if text.startswith("LIST("):
        return types.List(_to_type(types, text[5:-1]))
    if text.startswith("MAP("):
        return types.Map(types.STRING, _to_type(types, text[4:-1]))
    return getattr(types, text)


def _new_environment(variables: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415  # 12 MB, loaded only when a rule is used
    from cel_expr_python.ext import (  # noqa: PLC0415
        ext_bindings,
        ext_encoders,
        ext_math,
        ext_optional,
        ext_strings,
    )

    from federation.apiserver.semantics.cel.functions import library  # noqa: PLC0415

    return cel.NewEnv(
        variables={
            name: _to_type(cel.Type, type_ or "DYN") for name, _, type_ in (entry.partition(":") for entry in variables)
        },
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_math.ExtMath(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
            library(cel),
        ],
    )


_environment = lru_cache(_ENVIRONMENTS_MAX)(_new_environment)
