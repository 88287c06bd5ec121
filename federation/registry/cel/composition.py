"""CEL expressions that use named variables of the same policy, and what else is checked about them before they run.

`variables.foo` becomes a binding around the expression (`cel.bind`), which evaluates it at most once, and only when it
is needed, with the type that the compiler found for it. The rewritten name is as long as the original, so that line and
column of an error stay right. `programs.py` compiles. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from federation.registry.cel.programs import CompileError, EvaluationError, OutOfBudget, Program, compile_expression

Fields = Mapping[str, "Fields | None"]
"""Which fields a typed variable has; None for a field whose inside is not looked at."""

_TEXTS: Final = (
    r"//[^\n]*"  # comments
    r"|'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
)
_VARIABLE: Final = re.compile(_TEXTS + r"|(?<![\w.])variables(\s*)\.(\s*)([A-Za-z_]\w*)", re.DOTALL)
_PATH: Final = re.compile(_TEXTS + r"|(?<![\w.])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*(?!\w|\s*\())+)", re.DOTALL)
_STEP: Final = re.compile(r"\.\s*(\w+)")
_PLACE: Final = re.compile(r"<input>:(\d+):")
_MISSING_KEY: Final = re.compile(r'Key not found in map : "(.*)"')


@dataclass(slots=True)
class Environment:
    """The names that the expressions of one policy may use; grows by its own variables in their order."""

    names: tuple[str, ...]
    typed: Mapping[str, Fields] = field(default_factory=dict)
    """Names whose fields are known: another field is refused when the expression is compiled."""
    variables: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    """By name: the rewritten text, and which variables it needs."""
    broken: dict[str, str] = field(default_factory=dict)
    """Variables that did not compile, with the reason."""

    def add_variable(self, name: str, text: str) -> None:
        """Let later expressions use `variables.name`; CompileError, which those that use it get as well."""
        try:
            self.compile(text)
        except CompileError as error:
            self.broken[name] = str(error)
            raise
        finally:
            rewritten, used = _rewritten(text)
            self.variables[name] = (rewritten, used)

    def compile(self, text: str, returns: tuple[str, ...] = ()) -> Program:
        """Compile an expression whose type must be one of `returns` ((): any); CompileError in Kubernetes' words."""
        self._check_fields(text)
        rewritten, used = _rewritten(text)
        for name in sorted(used):
            if name not in self.variables:
                raise _undefined(text, name)
            if name in self.broken:
                raise CompileError(f"variable {name} is broken: {self.broken[name]}")
        prefix = "".join(f"cel.bind(variables_{name}, {self.variables[name][0]}\n, " for name in self._needed(used))
        composed = f"{prefix}\n{rewritten}\n{')' * prefix.count('cel.bind(variables_')}" if prefix else rewritten
        try:
            program = compile_expression(composed, self.names)
        except CompileError as error:
            raise CompileError(_restored(str(error), prefix.count("\n") + 1 if prefix else 0)) from error
        if returns and program.returns not in returns and not self._may_be_anything(program, composed):
            raise CompileError(f"must evaluate to {_shown(returns)} but got {_type_name(program.returns)}")
        return program

    def _needed(self, used: frozenset[str]) -> list[str]:
        """Return the used variables and those that they use, in the order of their definition."""
        needed, pending = set(used), list(used)
        while pending:
            for name in self.variables[pending.pop()][1] - needed:
                needed.add(name)
                pending.append(name)
        return [name for name in self.variables if name in needed]

    def _may_be_anything(self, program: Program, text: str) -> bool:
        """Tell whether the type is unknown here but known in Kubernetes, whose request and namespace are typed."""
        return program.returns == "DYN" and any(re.search(rf"\b{name}\b", text) for name in self.typed)

    def _check_fields(self, text: str) -> None:
        for name, steps in paths_of(text):
            fields = self.typed.get(name)
            for at, step in steps:
                if fields is None:
                    break
                if step not in fields:
                    raise CompileError("compilation failed: " + located(text, at, f"undefined field '{step}'"))
                fields = fields[step]


def value_of(program: Program, data: Mapping[str, Any]) -> Any:
    """Evaluate; OutOfBudget, or EvaluationError in the words of Kubernetes' CEL library where they are known."""
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


def paths_of(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield every `name.field.field` outside of texts: the name, and each field with the place of its dot."""
    for found in _PATH.finditer(text):
        if found[1]:
            yield found[1], [(step.start(), step[1]) for step in _STEP.finditer(text, found.start(2), found.end(2))]


def located(text: str, at: int, problem: str) -> str:
    """Return a problem at a place of an expression as CEL's compiler shows it."""
    before = text[:at]
    column = at - (before.rfind("\n") + 1)
    line = text.split("\n")[before.count("\n")]
    place = f"<input>:{before.count(chr(10)) + 1}:{column + 1}"
    return f"ERROR: {place}: {problem}\n | {line}\n | {'.' * column}^"


def _rewritten(text: str) -> tuple[str, frozenset[str]]:
    used: set[str] = set()

    def rewrite(found: re.Match[str]) -> str:
        if found[3] is None:
            return found[0]
        used.add(found[3])
        return f"variables_{found[3]}{found[1]}{found[2]}"

    return _VARIABLE.sub(rewrite, text), frozenset(used)


def _undefined(text: str, name: str) -> CompileError:
    for found in _VARIABLE.finditer(text):
        if found[3] == name:
            return CompileError("compilation failed: " + located(text, found.end(1), f"undefined field '{name}'"))
    return CompileError(f"compilation failed: undefined field '{name}'")


def _restored(message: str, lines: int) -> str:
    """Return a compiler's message about the composed text as one about the text that the user wrote."""
    counted = _PLACE.sub(lambda found: f"<input>:{int(found[1]) - lines}:", message)
    return counted.replace("variables_", "variables.")


def _shown(returns: tuple[str, ...]) -> str:
    found = [_type_name(name) for name in returns]
    return found[0] if len(found) == 1 else f"one of [{' '.join(found)}]"


def _type_name(name: str) -> str:
    """Return a type as Kubernetes' compiler writes it: `list(int)` for LIST<INT>."""
    lowered = name.lower().replace("<", "(").replace(">", ")")
    return "null_type" if lowered == "null" else lowered
