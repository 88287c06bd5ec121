"""All checks of the schema of one version of a CustomResourceDefinition, in Kubernetes' order. Pure.

They are handed out one by one, so that the caller can let others run between them. A check that builds on an earlier
one finds nothing when that one found something: rules are compiled only for a schema that is in order.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from federation.registry.cel.definitions import rule_problems
from federation.registry.schema.defaultvalues import default_problems
from federation.registry.schema.keywords import is_convertible, keyword_problems
from federation.registry.schema.model import Schema
from federation.registry.schema.structural import from_openapi
from federation.registry.schema.structure import structural_problems
from federation.registry.validation.fields import Causes, forbidden, invalid

_AT_ROOT: Final = frozenset(
    {"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"}
    | {"properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}
)


def schema_checks(version: Mapping[str, Any], at: str, *, checks_rules: bool = True) -> Iterator[Callable[[], Causes]]:
    """Yield the checks of the schema of a version; `at` is the path of its openAPIV3Schema in the definition.

    BadRequest from the first one for what is no schema at all.
    """
    raw = (version.get("schema") or {}).get("openAPIV3Schema")
    if raw is None:
        return
    has_status = "status" in (version.get("subresources") or {})
    found: Causes = []
    compiled: list[Schema] = []

    def root() -> Causes:
        compiled.append(from_openapi(raw))
        return _root_problems(raw, at, has_status=has_status)

    def structure() -> Causes:
        found.extend(structural_problems(raw, at) if is_convertible(raw) else ())
        return list(found)

    def keywords() -> Causes:
        more = keyword_problems(raw, at)
        found.extend(more)
        return more

    def defaults() -> Causes:
        if not found:
            found.extend(default_problems(compiled[0], at))
            return list(found)
        return []

    def rules() -> Causes:
        return [] if found else rule_problems(raw, at)

    yield from (root, structure, keywords, defaults)
    if checks_rules:
        yield rules


def _root_problems(raw: Mapping[str, Any], at: str, *, has_status: bool) -> Causes:
    causes: Causes = []
    if has_status:
        if raw.get("type") not in (None, "", "object"):
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            causes.append(invalid(f"{at}.type", raw["type"], text))
        if more := sorted(key for key, value in raw.items() if value and key not in _AT_ROOT):
            allowed = ", ".join(sorted(_AT_ROOT))
            text = f"only {allowed} are allowed at the root of the schema if the status subresource is enabled"
            causes.append(invalid(at, more, text))
    if raw.get("nullable"):
        causes.append(forbidden(f"{at}.nullable", "nullable cannot be true at the root"))
    return causes
