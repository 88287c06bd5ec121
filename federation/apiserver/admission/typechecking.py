"""Type checking of a policy's expressions against the schemas of the kinds that it matches. Pure.

Objects are untyped when expressions run, because one policy may match several kinds. Here each path below `object`,
`oldObject` and `params` is looked up in the schema of every kind that the rules name without a wildcard, at most ten.
The policy's status lists the problems.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.cel.composition import field_paths, format_error_at
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.semantics.schema.model import STRUCT, Schema

_KINDS_MAX: Final = 10


def type_check(policy: Object, kinds: Kinds) -> list[dict[str, str]]:
    """Return the `expressionWarnings` of a policy's status: `fieldRef` and `warning`."""
    spec = policy.get("spec") or {}
    matched = list(_matched_kinds(spec, kinds))[:_KINDS_MAX]
    params = _params(spec, kinds)
    warnings = []
    for field, text in _expressions(spec):
        found = []
        for info in matched:
            problems = "\n".join(_problems(text, {"object": info.schema, "oldObject": info.schema, **params}))
            if problems:
                resource = info.resource
                shown = f"{resource.group}/{resource.version}" if resource.group else resource.version
                found.append(f"{shown}, Kind={resource.kind}: {problems}")
        if found:
            warnings.append({"fieldRef": field, "warning": "\n".join(found)})
    return warnings


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


def _problems(text: str, schemas: Mapping[str, Schema]) -> Iterator[str]:
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
