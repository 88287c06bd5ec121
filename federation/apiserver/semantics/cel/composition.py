"""Compile CEL expressions that use the variables of their policy, and check the fields of typed names. Pure.

`variables.foo` becomes a `cel.bind` around the expression. It is evaluated at most once, only when used, with the type
that the compiler found. The rewritten name has the length of the original, so line and column of errors stay right.
`programs.py` compiles.

Decision: docs/decisions/0007-policy-variables-are-bindings.md
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from federation.apiserver.semantics.cel.budget import ADMISSION_LIMIT, Limit
from federation.apiserver.semantics.cel.checkedexpr import parse_checked_expr
from federation.apiserver.semantics.cel.patchtypes import (
    check_type,
    find_field_error,
    restore_places,
    rewrite_literals,
)
from federation.apiserver.semantics.cel.programs import (
    CompileError,
    EvaluationError,
    OutOfBudget,
    Program,
    check_cost,
    compile_expression,
    format_error_at,
)

Fields = Mapping[str, "Fields | None"]
"""The fields of a typed variable; None for a field whose own fields are not checked."""

_LITERALS: Final = (
    r"//[^\n]*"  # comments
    r"|'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
)
_VARIABLE: Final = re.compile(_LITERALS + r"|(?<![\w.])variables(\s*)\.(\s*)([A-Za-z_]\w*)", re.DOTALL)
_HAS: Final = re.compile(r"(?<![\w.])has\s*\(\s*$")
_PATH: Final = re.compile(_LITERALS + r"|(?<![\w.])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*(?!\w|\s*\())+)", re.DOTALL)
_STEP: Final = re.compile(r"\.\s*(\w+)")
_PLACE: Final = re.compile(r"<input>:(\d+):")
_MISSING_KEY: Final = re.compile(r'Key not found in map : "(.*)"')


@dataclass(slots=True)
class Environment:
    """The names that the expressions of one policy may use; the policy's variables are added in their order."""

    names: tuple[str, ...]
    typed: Mapping[str, Fields] = field(default_factory=dict)
    """Names with known fields: an unknown field is a CompileError."""
    variables: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    """The rewritten expression of each variable and the names of the variables it uses."""
    broken: dict[str, str] = field(default_factory=dict)
    """The error of each variable that did not compile."""
    limit: Limit = ADMISSION_LIMIT
    """The most that one evaluation of an expression may cost."""
    is_new: bool = False
    """Whether the expressions are being written: one that exceeds the limit for ordinary data does not compile.

    A stored expression compiles, and is judged by the data when it is evaluated.
    """

    def add_variable(self, name: str, text: str) -> None:
        """Add a variable for later expressions; a CompileError is raised here and for each expression that uses it."""
        try:
            self.compile(text)
        except CompileError as error:
            self.broken[name] = str(error)
            raise
        finally:
            self.variables[name] = _rewrite_variables(text)

    def compile(self, text: str, returns: tuple[str, ...] = ()) -> Program:
        """Compile an expression whose type must be one of `returns`, or any for (); CompileError."""
        program, composed, _ = self._compile(text, text)
        if returns and program.returns not in returns and not self._is_dynamic(program, composed):
            raise CompileError(f"must evaluate to {_format_types(returns)} but got {_type_name(program.returns)}")
        return program

    def compile_patch(self, text: str, returns: str) -> Program:
        """Compile a mutation, in which the types of `patchtypes.py` are known, to one of them; CompileError.

        `returns` is OBJECT or JSON_PATCH_LIST.
        """
        rewritten, insertions = rewrite_literals(text)
        try:
            program, _, start = self._compile(text, rewritten)
        except CompileError as error:
            raise CompileError(restore_places(str(error), text, rewritten, insertions)) from error
        tree, places = parse_checked_expr(program.serialized())
        if (problem := find_field_error(tree)) is not None:
            place = max(0, places.get(problem[0], 0) - start)
            message = format_error_at(rewritten, min(place, len(rewritten)), problem[1])
            raise CompileError(f"compilation failed: {restore_places(message, text, rewritten, insertions)}")
        if found := check_type(tree, returns):
            shown = _type_name(program.returns) if found == "dyn" else found
            raise CompileError(f"must evaluate to {returns} but got {shown}")
        return program

    def _compile(self, text: str, used_text: str) -> tuple[Program, str, int]:
        """Compile `used_text`, which stands for the user's `text`.

        Return the program, the composed text and the offset of `used_text` in it.
        """
        self._check_fields(text)
        rewritten, used = _rewrite_variables(used_text)
        for name in sorted(used):
            if name not in self.variables:
                raise _undefined_variable(text, name)
            if name in self.broken:
                raise CompileError(f"variable {name} is broken: {self.broken[name]}")
        prefix = "".join(f"cel.bind(variables_{name}, {self.variables[name][0]}\n, " for name in self._needed(used))
        composed = f"{prefix}\n{rewritten}\n{')' * prefix.count('cel.bind(variables_')}" if prefix else rewritten
        try:
            program = compile_expression(composed, self.names, limit=self.limit)
            if self.is_new:
                check_cost(program)
        except CompileError as error:
            raise CompileError(_restore_positions(str(error), prefix.count("\n") + 1 if prefix else 0)) from error
        return program, composed, len(prefix) + 1 if prefix else 0

    def _needed(self, used: frozenset[str]) -> list[str]:
        """Return the used variables and, transitively, the variables they use, in the order of their definition."""
        needed, pending = set(used), list(used)
        while pending:
            for name in self.variables[pending.pop()][1] - needed:
                needed.add(name)
                pending.append(name)
        return [name for name in self.variables if name in needed]

    def _is_dynamic(self, program: Program, text: str) -> bool:
        """Return True if the type is unknown only because `typed` names are dynamic for our compiler."""
        return program.returns == "DYN" and any(re.search(rf"\b{name}\b", text) for name in self.typed)

    def _check_fields(self, text: str) -> None:
        for name, steps in field_paths(text):
            fields = self.typed.get(name)
            for at, step in steps:
                if fields is None:
                    break
                if step not in fields:
                    raise CompileError("compilation failed: " + format_error_at(text, at, f"undefined field '{step}'"))
                fields = fields[step]


def evaluate(program: Program, data: Mapping[str, Any]) -> Any:
    """Evaluate a program; OutOfBudget, or EvaluationError with the text of cel-go where it is known."""
    try:
        return program.evaluate(data)
    except OutOfBudget:
        raise
    except EvaluationError as error:
        text = str(error)
        if missing := _MISSING_KEY.fullmatch(text):
            text = f"no such key: {missing[1]}"
        elif text.startswith(("No matching overloads found", "Applying SELECT to non-message type")):
            text = "no such overload"
        raise EvaluationError(text) from error


def field_paths(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield every `name.field.field` outside string literals: the name, and (offset of the dot, field) pairs."""
    for found in _PATH.finditer(text):
        if found[1]:
            yield found[1], [(step.start(), step[1]) for step in _STEP.finditer(text, found.start(2), found.end(2))]


def rewrite_paths(text: str, names: Mapping[str, str]) -> str:
    """Return the expression with variables in place of field paths, `names[path]` for each known path.

    Paths in `has(…)` and in string literals are kept.
    """

    def rewrite(found: re.Match[str]) -> str:
        path = found[0]
        is_kept = not found[1] or path not in names or _HAS.search(text, 0, found.start()) is not None
        return path if is_kept else names[path]

    return _PATH.sub(rewrite, text)


def _rewrite_variables(text: str) -> tuple[str, frozenset[str]]:
    """Return the expression with `variables_foo` for `variables.foo`, and the names of the variables."""
    used: set[str] = set()

    def rewrite(found: re.Match[str]) -> str:
        if found[3] is None:
            return found[0]
        used.add(found[3])
        return f"variables_{found[3]}{found[1]}{found[2]}"

    return _VARIABLE.sub(rewrite, text), frozenset(used)


def _undefined_variable(text: str, name: str) -> CompileError:
    at = next(found.end(1) for found in _VARIABLE.finditer(text) if found[3] == name)
    return CompileError("compilation failed: " + format_error_at(text, at, f"undefined field '{name}'"))


def _restore_positions(message: str, lines: int) -> str:
    """Return the compiler's message with the lines and names of the user's text instead of the composed text."""
    counted = _PLACE.sub(lambda found: f"<input>:{int(found[1]) - lines}:", message)
    return counted.replace("variables_", "variables.")


def _format_types(returns: tuple[str, ...]) -> str:
    found = [_type_name(name) for name in returns]
    return found[0] if len(found) == 1 else f"one of [{' '.join(found)}]"


def _type_name(name: str) -> str:
    """Return a type as cel-go writes it, for example `list(int)` for LIST<INT>."""
    lowered = name.lower().replace("<", "(").replace(">", ")")
    return "null_type" if lowered == "null" else lowered
