"""Validate what webhooks and policies share: rules, selectors, match conditions and CEL expressions.

Expressions are compiled in the environment in which they run, so that stored expressions can be evaluated.
"""

from collections.abc import Mapping
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, invalid, one_of, required, too_many
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.programs import CompileError
from federation.apiserver.semantics.validation.containervalidation import validate_unique
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_CONDITIONS_MAX: Final = 64
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
Fields = Mapping[str, Any]


def validate_match_resources(resources: Fields, field: str) -> Causes:
    causes = one_of(f"{field}.matchPolicy", resources.get("matchPolicy"), MATCH_POLICIES)
    causes += validate_selectors(resources, field)
    for part in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(resources.get(part) or ()):
            at = f"{field}.{part}[{index}]"
            seen: set[str] = set()
            for position, name in enumerate(rule.get("resourceNames") or ()):
                problems = nameformats.path_segment(name)
                causes += validate_unique(f"{at}.resourceNames[{position}]", name, problems, seen)
            causes += validate_rule(rule, at)
    return causes


def validate_selectors(owner: Fields, field: str) -> Causes:
    return [
        problem
        for name in ("namespaceSelector", "objectSelector")
        for problem in validate_label_selector(owner.get(name) or {}, f"{field}.{name}")
    ]


def validate_rule(rule: Fields, field: str) -> Causes:
    operations = rule.get("operations") or []
    causes: Causes = [] if operations else [required(f"{field}.operations")]
    if len(operations) > 1 and "*" in operations:
        causes.append(
            invalid(f"{field}.operations", operations, "if '*' is present, must not specify other operations")
        )
    for index, operation in enumerate(operations):
        causes += one_of(f"{field}.operations[{index}]", operation, _OPERATIONS)
    for part in ("apiGroups", "apiVersions"):
        listed = rule.get(part) or []
        if not listed:
            causes.append(required(f"{field}.{part}"))
        if len(listed) > 1 and "*" in listed:
            noun = "groups" if part == "apiGroups" else "versions"
            causes.append(invalid(f"{field}.{part}", listed, f"if '*' is present, must not specify other API {noun}"))
    causes += [
        required(f"{field}.apiVersions[{index}]")
        for index, version in enumerate(rule.get("apiVersions") or ())
        if not version
    ]
    causes += _validate_resources(rule.get("resources") or [], f"{field}.resources")
    return causes + one_of(f"{field}.scope", rule.get("scope"), _SCOPES)


def _validate_resources(resources: list[str], field: str) -> Causes:
    """Require that no entry is covered by a wildcard entry."""
    if not resources:
        return [required(field)]
    causes: Causes = []
    wildcards = {entry for entry in resources if entry.endswith("/*")}
    subresources = {entry.partition("/")[2] for entry in resources if entry.startswith("*/")}
    for index, entry in enumerate(resources):
        resource, _, subresource = entry.partition("/")
        at = f"{field}[{index}]"
        if not entry:
            causes.append(required(at))
        elif subresource and subresource != "*" and f"{resource}/*" in wildcards:
            text = f"if '{resource}/*' is present, must not specify {entry}"
            causes.append(invalid(at, entry, text))
        elif subresource and resource != "*" and subresource in subresources:
            causes.append(invalid(at, entry, f"if '*/{subresource}' is present, must not specify {entry}"))
    if "*/*" in resources and len(resources) > 1:
        causes.append(invalid(field, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in entry for entry in resources if entry != "*"):
        causes.append(
            invalid(field, resources, "if '*' is present, must not specify other resources without subresources")
        )
    return causes


def validate_conditions(conditions: Any, environment: Environment, field: str) -> Causes:
    listed = conditions or ()
    causes = too_many(field, listed, _CONDITIONS_MAX)
    seen: set[str] = set()
    for index, condition in enumerate(listed):
        at, name = f"{field}[{index}]", condition.get("name") or ""
        text = (condition.get("expression") or "").strip()
        causes += (
            validate_expression(text, environment, f"{at}.expression", "BOOL")
            if text
            else [required(f"{at}.expression")]
        )
        if not name:
            causes.append(required(f"{at}.name"))
        else:
            causes += validate_unique(f"{at}.name", name, nameformats.qualified_name(name), seen)
    return causes


def validate_expression(text: str, environment: Environment, field: str, *returns: str) -> Causes:
    try:
        environment.compile(text, returns)
    except CompileError as error:
        return [invalid(field, text, str(error))]
    return []
