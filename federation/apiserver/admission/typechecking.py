"""Type checking of a policy's expressions against the schemas of the kinds that it matches. Pure.

Objects are untyped when expressions run, because one policy may match several kinds. Here each path below `object`,
`oldObject` and `params` is looked up in the schema of every kind that the rules name without a wildcard, at most ten.
A path to a scalar then becomes a variable of its type (`object.spec.replicas` is `object_spec_replicas`, which has the
same length, so places in errors stay right), and the expressions are compiled again. The policy's status lists the
problems.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.composition import Environment, field_paths, rewrite_paths
from federation.apiserver.semantics.cel.programs import CompileError, format_error_at
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.semantics.schema.model import BOOLEAN, INTEGER, NUMBER, STRING, STRUCT, Schema

_KINDS_MAX: Final = 10
_TYPES: Final = {BOOLEAN: "BOOL", INTEGER: "INT", NUMBER: "DOUBLE", STRING: "STRING"}
_OTHER_TYPES: Final = frozenset({"byte", "date", "date-time", "datetime", "duration"})
"""Formats of strings whose values have another type in CEL."""


def type_check(policy: Object, kinds: Kinds) -> list[dict[str, str]]:
    """Return the `expressionWarnings` of a policy's status: `fieldRef` and `warning`."""
    spec = policy.get("spec") or {}
    params = _params(spec, kinds)
    matched = list(_matched_kinds(spec, kinds))[:_KINDS_MAX]
    checkers = [(info, _Checker(spec, {"object": info.schema, "oldObject": info.schema, **params})) for info in matched]
    warnings = []
    for field, text in _expressions(spec):
        found = []
        for info, checker in checkers:
            problems = "\n".join(checker.problems(text))
            if problems:
                resource = info.resource
                shown = f"{resource.group}/{resource.version}" if resource.group else resource.version
                found.append(f"{shown}, Kind={resource.kind}: {problems}")
        if found:
            warnings.append({"fieldRef": field, "warning": "\n".join(found)})
    return warnings


class _Checker:
    """Checks the expressions of a policy for one kind."""

    def __init__(self, spec: Mapping[str, Any], schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        variables = spec.get("variables") or ()
        texts = [*(text for _, text in _expressions(spec)), *(variable["expression"] for variable in variables)]
        typed = {path: type_ for text in texts for path, type_ in _typed_paths(text, schemas)}
        self._names = {path: path.replace(".", "_") for path in typed}
        self._paths = {name: path for path, name in self._names.items()}
        known = environment(has_params=bool(spec.get("paramKind")))
        declared = (f"{self._names[path]}:{type_}" for path, type_ in sorted(typed.items()))
        self._environment = Environment((*known.names, *declared), known.typed)
        for variable in variables:
            try:
                self._environment.add_variable(variable["name"], rewrite_paths(variable["expression"], self._names))
            except CompileError:
                continue  # the error is reported by every expression that uses the variable

    def problems(self, text: str) -> Iterator[str]:
        """Yield the problems of an expression."""
        undefined = list(_undefined_fields(text, self._schemas))
        yield from undefined
        if not undefined:
            try:
                self._environment.compile(rewrite_paths(text, self._names))
            except CompileError as error:
                problem = str(error).removeprefix("compilation failed: ")
                for name, path in self._paths.items():
                    problem = problem.replace(name, path)
                yield problem


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(spec.get("validations") or ()):
        for name in ("expression", "messageExpression"):
            if validation.get(name):
                yield f"spec.validations[{index}].{name}", validation[name]


def _matched_kinds(spec: Mapping[str, Any], kinds: Kinds) -> Iterator[KindInfo]:
    seen = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for plural in rule.get("resources") or ():
                    if "*" in f"{group}{version}{plural}" or "/" in plural or (group, version, plural) in seen:
                        continue
                    seen.add((group, version, plural))
                    try:
                        yield kinds.lookup(group, version, plural)
                    except NotFound:
                        continue


def _params(spec: Mapping[str, Any], kinds: Kinds) -> dict[str, Schema]:
    kind = spec.get("paramKind")
    if not kind:
        return {}
    group, _, version = str(kind.get("apiVersion")).rpartition("/")
    try:
        return {"params": kinds.by_kind(group, version, str(kind.get("kind"))).schema}
    except NotFound:
        return {}


def _typed_paths(text: str, schemas: Mapping[str, Schema]) -> Iterator[tuple[str, str]]:
    """Yield the paths to scalar values, as they are written, and their types."""
    for name, steps in field_paths(text):
        schema: Schema | None = schemas.get(name)
        for _, step in steps:
            schema = schema.child(step) if schema is not None else None
        if schema is not None and schema.kind in _TYPES and schema.format not in _OTHER_TYPES and not schema.nullable:
            yield ".".join((name, *(step for _, step in steps))), _TYPES[schema.kind]


def _undefined_fields(text: str, schemas: Mapping[str, Schema]) -> Iterator[str]:
    for name, steps in field_paths(text):
        schema: Schema | None = schemas.get(name)
        for at, step in steps:
            if schema is None:
                break
            if schema.kind == STRUCT and not schema.preserve_unknown and step not in schema.properties:
                if schema.properties:
                    yield format_error_at(text, at, f"undefined field '{step}'")
                break
            schema = schema.child(step)
