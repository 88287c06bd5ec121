"""CEL expressions: compiled once, evaluated often; the only module that imports the CEL library. Pure.

The library (the C++ runtime of the language's authors) is loaded at the first expression and not before, so a server
without rules does not pay for it. Data are plain JSON values and enter untyped (`dyn`), so a wrong field name is found
when a rule runs, not when it is compiled. Times are text until `timestamp()` reads them. Comprehensions with two
variables are not in the library. Kubernetes' own functions are in `functions.py`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from federation.base.errors import FederationError

_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"


class CompileError(FederationError):
    """The text is no expression, or uses something that does not exist; the message is the compiler's."""


class EvaluationError(FederationError):
    """The expression has no value for these data, e.g. because a key is absent."""


class OutOfBudget(EvaluationError):
    """The evaluation was ended because it took too many steps."""


class Program:
    """A compiled expression."""

    __slots__ = ("_expression",)

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    @property
    def returns(self) -> str:
        """The type that the compiler found: BOOL, STRING, DYN (known when it runs) and so on."""
        return str(self._expression.return_type())

    def serialized(self) -> bytes:
        """Return the tree of the expression as the library writes it; `trees.py` reads it."""
        found: bytes = self._expression.serialize()
        return found

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        """Return the value as plain Python; EvaluationError, also when it takes too many steps."""
        try:
            found = self._expression.eval(data=data)
            value = found.plain_value()
        except RuntimeError as error:
            # The library stops a program after 10,000 steps of its loops.
            if "Iteration budget" in str(error):
                raise OutOfBudget(_TOO_COSTLY) from error
            raise EvaluationError(str(error)) from error
        except TypeError as error:
            raise EvaluationError("the value has no JSON form") from error
        if str(found.type()) == "ERROR":
            raise EvaluationError(str(value).partition(": ")[2] or str(value))
        return value


def compile_expression(text: str, variables: tuple[str, ...], *, returns: str = "") -> Program:
    """Compile `text` over `variables`; CompileError, also when the value is known not to be of type `returns`."""
    try:
        program = Program(_environment(variables).compile(text))
    except RuntimeError as error:
        message = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        raise CompileError(f"compilation failed: {message}") from error
    if returns and program.returns not in {returns, "DYN"}:
        raise CompileError(f"must evaluate to {returns.lower()}")
    return program


@cache
def _environment(variables: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415  # 12 MB that only users of rules pay for
    from cel_expr_python.ext import (  # noqa: PLC0415
        ext_bindings,
        ext_encoders,
        ext_math,
        ext_optional,
        ext_strings,
    )

    from federation.registry.cel.functions import library  # noqa: PLC0415

    return cel.NewEnv(
        variables=dict.fromkeys(variables, cel.Type.DYN),
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_math.ExtMath(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
            library(cel),
        ],
    )
