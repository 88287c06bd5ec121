"""Validate a CustomResourceDefinition except its schemas: names, versions, columns, scale, conversion. Pure.

Paths and texts are those of Kubernetes, including the paths of its internal type (`webhookClientConfig`). Schemas may
be large, so `registry/crdcontroller.py` validates them one version at a time with `schemavalidation.py`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from federation.apimachinery import conditions, nameformats
from federation.apimachinery.clientconfig import validate_client_config
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.crd.schemapaths import PathError, resolve

_SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_SELECTABLE_MAX: Final = 8
_WARNING_LENGTH_MAX: Final = 256
_APPROVAL: Final = "api-approved.kubernetes.io"
_APPROVAL_PAGE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def validate_crd(obj: Object) -> Causes:
    """Return the causes of an invalid new CRD."""
    spec = obj["spec"]
    group, found = spec.get("group") or "", spec["names"]
    causes: Causes = []
    if (name := obj["metadata"].get("name")) != (wanted := f"{found.get('plural') or ''}.{group}"):
        text = 'must be spec.names.plural+"."+spec.group'
        causes += [invalid("metadata.name", name, text)] if wanted != "." else []
    if not group:
        causes.append(required("spec.group"))
    elif problems := nameformats.dns1123_subdomain(group):
        causes.append(invalid("spec.group", group, ",".join(problems)))
    elif "." not in group:
        causes.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    causes += _one_of("spec.scope", spec.get("scope"), _SCOPES)
    causes += _validate_versions(spec.get("versions") or [])
    causes += [
        required(f"spec.names.{field}") for field in ("plural", "singular", "kind", "listKind") if not found.get(field)
    ]
    causes += _validate_names(found)
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        causes.append(invalid("spec.preserveUnknownFields", value=True, message=text))
    return causes + _validate_conversion(spec.get("conversion") or {}) + _validate_approval(obj, group)


def validate_crd_update(new: Object, old: Object) -> Causes:
    """Return the causes of an invalid CRD update; group, names and scope of stored objects are immutable."""
    spec, before = new["spec"], old["spec"]
    causes = validate_crd(new)
    if is_established(old):
        causes += immutable("spec.scope", spec.get("scope"), before.get("scope"))
        causes += immutable("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind"))
    causes += immutable("spec.group", spec.get("group"), before.get("group"))
    causes += immutable("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural"))
    known = {version.get("name") for version in spec.get("versions") or ()}
    for index, stored in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if stored not in known:
            text = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in"
                f" spec.versions until a storage migration ensures no data remains persisted in {stored} and removes"
                f" {stored} from status.storedVersions"
            )
            causes.append(invalid(f"status.storedVersions[{index}]", stored, text))
    return causes


def schemas_with_paths(versions: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the versions with different schemas, each with the path of its schema."""
    if _is_shared(versions, "schema"):
        return [(versions[0], "spec.validation.openAPIV3Schema")]
    return [(version, f"spec.versions[{index}].schema.openAPIV3Schema") for index, version in enumerate(versions)]


def _is_shared(versions: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Return True if all versions have the same value; Kubernetes then reports the path of the shared field."""
    shared = versions[0].get(key) if versions else None
    return bool(shared) and all(version.get(key) == shared for version in versions)


def is_established(obj: Object) -> bool:
    """Return True if the CRD has the condition Established."""
    return conditions.is_true((obj.get("status") or {}).get("conditions"), "Established")


def _validate_versions(versions: Sequence[Mapping[str, Any]]) -> Causes:
    causes: Causes = [
        required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
        for index, version in enumerate(versions)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None
    ]
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        if problems := nameformats.dns1035_label(version.get("name") or ""):
            causes.append(invalid(f"{at}.name", version.get("name") or "", ",".join(problems)))
        causes += _validate_deprecation(version, at)
    found = [version.get("name") for version in versions]
    if len(set(found)) != len(found):
        causes.append(invalid("spec.versions", [], "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        causes.append(invalid("spec.versions", [], "must have exactly one version marked as storage version"))
    for version, at in _with_paths(versions, "subresources"):
        causes += _validate_scale((version.get("subresources") or {}).get("scale"), f"{at}.scale")
    for version, at in _with_paths(versions, "additionalPrinterColumns"):
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            causes += _validate_column(column, f"{at}[{index}]")
    for version, at in _with_paths(versions, "selectableFields"):
        causes += _validate_selectable(version, at)
    return causes


def _with_paths(versions: Sequence[Mapping[str, Any]], key: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the versions with the path of their `key`, only the first version if all share it."""
    if _is_shared(versions, key):
        yield from ((version, f"spec.{key}") for version in versions[:1])
        return
    for index, version in enumerate(versions):
        yield version, f"spec.versions[{index}].{key}"


def _validate_deprecation(version: Mapping[str, Any], at: str) -> Causes:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    problems = []
    if not version.get("deprecated"):
        problems = ["can only be set for deprecated versions"]
    elif not warning:
        problems = ["must not be an empty string"]
    elif len(warning.encode()) > _WARNING_LENGTH_MAX:
        problems = [f"must be <= {_WARNING_LENGTH_MAX} characters long"]
    elif not warning.isprintable():
        at_index = next(index for index, letter in enumerate(warning) if not letter.isprintable())
        text = "must only contain printable UTF-8 characters; non-printable character found at index"
        problems = [f"{text} {at_index}"]
    return [invalid(f"{at}.deprecationWarning", warning, problem) for problem in problems]


def _validate_scale(scale: Mapping[str, Any] | None, at: str) -> Causes:
    if scale is None:
        return []
    causes: Causes = []
    for field, is_required, roots, parent in (
        ("specReplicasPath", True, (".spec.",), ".spec"),
        ("statusReplicasPath", True, (".status.",), ".status"),
        ("labelSelectorPath", False, (".spec.", ".status."), "either .spec or .status"),
    ):
        path = scale.get(field) or ""
        if not path:
            causes += [required(f"{at}.{field}")] if is_required else []
        elif not path.startswith("."):
            causes.append(invalid(f"{at}.{field}", path, "must be a simple json path starting with ."))
        elif not path.startswith(roots):
            causes.append(invalid(f"{at}.{field}", path, f"should be a json path under {parent}"))
    return causes


def _validate_column(column: Mapping[str, Any], at: str) -> Causes:
    causes: Causes = [] if column.get("name") else [required(f"{at}.name")]
    kind, format_, path = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    text = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        causes.append(required(f"{at}.type", text))
    elif kind not in _COLUMN_TYPES:
        causes.append(invalid(f"{at}.type", kind, text))
    if format_ and format_ not in _COLUMN_FORMATS:
        causes.append(invalid(f"{at}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not path:
        causes.append(required(f"{at}.JSONPath"))
    elif not path.startswith("."):
        causes.append(invalid(f"{at}.JSONPath", path, "must be a simple json path starting with ."))
    return causes


def _validate_selectable(version: Mapping[str, Any], at: str) -> Causes:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    causes: Causes = []
    seen: set[str] = set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        place, path = f"{at}[{index}].jsonPath", field.get("jsonPath") or ""
        if not path:
            causes.append(required(place))
            continue
        try:
            found, target = resolve(path, schema, may_use_brackets=False)
        except PathError as error:
            causes.append(invalid(place, path, f"is an invalid path: {error}"))
            continue
        if found.partition(".")[0] == "metadata":
            causes.append(invalid(place, path, "must not point to fields in metadata"))
        if target.get("type") not in _SELECTABLE_TYPES:
            text = "must point to a field of type string, boolean or integer."
            causes.append(invalid(place, path, f"{text} Enum string fields and strings with formats are allowed."))
        if found in seen:
            causes.append(duplicate(place, path))
        seen.add(found)
    if len(seen) > _SELECTABLE_MAX:
        message = f"Too many: {len(seen)}: must have at most {_SELECTABLE_MAX} items"
        causes.append({"reason": "FieldValueTooMany", "message": message, "field": at})
    return causes


def _validate_names(found: Mapping[str, Any]) -> Causes:
    causes: Causes = []
    for field in ("plural", "singular", "kind", "listKind"):
        value = found.get(field) or ""
        is_kind = field in ("kind", "listKind")
        if value and (problems := nameformats.dns1035_label(value.lower() if is_kind else value)):
            text = ("may have mixed case, but should otherwise match: " if is_kind else "") + ",".join(problems)
            causes.append(invalid(f"spec.names.{field}", value, text))
    if found.get("kind") and found["kind"] == found.get("listKind"):
        causes.append(invalid("spec.names.listKind", found["listKind"], "kind and listKind may not be the same"))
    return causes + [
        invalid(f"spec.names.{field}[{index}]", value, ",".join(problems))
        for field in ("shortNames", "categories")
        for index, value in enumerate(found.get(field) or ())
        if (problems := nameformats.dns1035_label(value))
    ]


def _validate_conversion(conversion: Mapping[str, Any]) -> Causes:
    at, strategy = "spec.conversion", conversion.get("strategy")
    causes = _one_of(f"{at}.strategy", strategy, _STRATEGIES)
    webhook = conversion.get("webhook")
    config = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    place = f"{at}.webhookClientConfig"
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        causes += [forbidden(place, text)] if config is not None else []
        return causes + ([forbidden(f"{at}.conversionReviewVersions", text)] if versions else [])
    if config is None:
        causes.append(required(place, "required when strategy is set to Webhook"))
    else:
        causes += validate_client_config(config, place)
    return causes + _validate_review_versions(versions, f"{at}.conversionReviewVersions")


def _validate_review_versions(versions: list[str], at: str) -> Causes:
    if not versions:
        return [required(at)]
    causes: Causes = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            causes.append(invalid(f"{at}[{index}]", version, "duplicate version"))
        else:
            causes += [invalid(f"{at}[{index}]", version, problem) for problem in nameformats.dns1035_label(version)]
    if not set(versions) & set(_REVIEW_VERSIONS):
        causes.append(invalid(at, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return causes


def _validate_approval(obj: Object, group: str) -> Causes:
    """Require an approval annotation for CRDs in the protected groups of the Kubernetes community."""
    if group not in ("k8s.io", "kubernetes.io") and not group.endswith((".k8s.io", ".kubernetes.io")):
        return []
    at, approval = f"metadata.annotations[{_APPROVAL}]", (obj["metadata"].get("annotations") or {}).get(_APPROVAL) or ""
    text = f'protected groups must have approval annotation "{_APPROVAL}"'
    if not approval:
        return [required(at, f"{text}, {_APPROVAL_PAGE}")]
    url = urlsplit(approval)
    if approval.startswith("unapproved") or (url.scheme and url.netloc):
        return []
    return [invalid(at, approval, f'{text} with either a URL or a reason starting with "unapproved", {_APPROVAL_PAGE}')]


def _one_of(at: str, value: Any, supported: Iterable[str]) -> Causes:
    if not value:
        return [required(at)]
    return [] if value in supported else [not_supported(at, value, supported)]
