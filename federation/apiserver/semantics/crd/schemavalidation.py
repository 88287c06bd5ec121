"""Validate the schema of one CRD version in separate steps, in Kubernetes' order. Pure.

The caller runs the steps one at a time, so that the event loop can run other requests between them. Defaults and rules
are validated only if the steps before found no causes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from federation.apimachinery.fielderrors import Causes, forbidden, invalid
from federation.apiserver.semantics.crd.defaultvalidation import validate_defaults
from federation.apiserver.semantics.crd.keywordvalidation import is_convertible, validate_keywords
from federation.apiserver.semantics.crd.rulevalidation import validate_rules
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.crd.structuralvalidation import validate_structure
from federation.apiserver.semantics.schema.model import Schema

_AT_ROOT: Final = frozenset(
    {"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"}
    | {"properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}
)


def schema_checks(version: Mapping[str, Any], at: str) -> Iterator[Callable[[], Causes]]:
    """Yield the validation steps for a version; `at` is the path of its openAPIV3Schema in the CRD.

    The first step raises BadRequest for a malformed schema.
    """
    raw = (version.get("schema") or {}).get("openAPIV3Schema")
    if raw is None:
        return
    has_status = "status" in (version.get("subresources") or {})
    found: Causes = []
    compiled: list[Schema] = []

    def root() -> Causes:
        compiled.append(from_openapi(raw))
        return _validate_root(raw, at, has_status=has_status)

    def structure() -> Causes:
        found.extend(validate_structure(raw, at) if is_convertible(raw) else ())
        return list(found)

    def keywords() -> Causes:
        more = validate_keywords(raw, at)
        found.extend(more)
        return more

    def defaults() -> Causes:
        if not found:
            found.extend(validate_defaults(compiled[0], at))
            return list(found)
        return []

    def rules() -> Causes:
        return [] if found else validate_rules(raw, at)

    yield from (root, structure, keywords, defaults, rules)


def _validate_root(raw: Mapping[str, Any], at: str, *, has_status: bool) -> Causes:
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
