"""Validate webhook configurations, ValidatingAdmissionPolicies and their bindings.

Expressions are compiled in the environment in which they run, so that stored expressions can be evaluated.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery.clientconfig import validate_client_config
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, one_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.programs import RESERVED_WORDS, CompileError
from federation.apiserver.semantics.validation.podvalidation import validate_unique
from federation.apiserver.semantics.validation.workloadvalidation import validate_label_selector

_CONDITIONS_MAX: Final = 64
_ANNOTATIONS_MAX: Final = 20
_VALUE_EXPRESSION_BYTES_MAX: Final = 5 * 1024
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_NO_VALIDATIONS: Final = "validations or auditAnnotations must contain at least one item"
_DENY_AND_WARN: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and"
    " headers serves no purpose)"
)
_EXCLUSIVE_REFERENCES: Final = "name and selector are mutually exclusive"
Fields = Mapping[str, Any]


def validate_webhooks(obj: Object) -> Causes:
    """Validate a ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""
    causes: Causes = []
    seen: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        causes += _validate_webhook(webhook, field)
        name = webhook.get("name") or ""
        if name in seen:
            causes.append(duplicate(f"{field}.name", name))
        seen.add(name)
    return causes


def validate_policy(obj: Object) -> Causes:
    """Validate a ValidatingAdmissionPolicy with defaults."""
    spec = obj.get("spec") or {}
    causes = one_of("spec.failurePolicy", spec.get("failurePolicy"), _FAILURE_POLICIES)
    has_params = bool(spec.get("paramKind"))
    if spec.get("paramKind") is not None:
        causes += _validate_param_kind(spec["paramKind"], "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        causes.append(required("spec.matchConstraints"))
    else:
        causes += _validate_match_resources(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            causes.append(required("spec.matchConstraints.resourceRules"))
    expressions, messages = environment(has_params=has_params), environment(has_params=has_params, has_authorizer=False)
    causes += _validate_conditions(spec.get("matchConditions"), expressions, "spec.matchConditions")
    for index, variable in enumerate(spec.get("variables") or ()):
        causes += _validate_variable(variable, expressions, messages, f"spec.variables[{index}]")
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        causes += [required("spec.validations", _NO_VALIDATIONS), required("spec.auditAnnotations", _NO_VALIDATIONS)]
    for index, validation in enumerate(validations):
        causes += _validate_validation(validation, expressions, messages, f"spec.validations[{index}]")
    return causes + _validate_annotations(obj["metadata"].get("name") or "", annotations, expressions)


def validate_binding(obj: Object) -> Causes:
    """Validate a ValidatingAdmissionPolicyBinding with defaults."""
    spec = obj.get("spec") or {}
    name = spec.get("policyName") or ""
    causes: Causes = []
    if not name:
        causes.append(required("spec.policyName"))
    else:
        causes += [invalid("spec.policyName", name, text) for text in nameformats.dns1123_subdomain(name)]
    if spec.get("paramRef") is not None:
        causes += _validate_param_ref(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        # Kubernetes misspells this path, and tools may compare texts.
        causes += _validate_match_resources(spec["matchResources"], "spec.matchResouces")
    return causes + _validate_actions(spec.get("validationActions") or (), "spec.validationActions")


def _validate_webhook(webhook: Fields, field: str) -> Causes:
    name = webhook.get("name") or ""
    causes = [invalid(f"{field}.name", name, text) for text in nameformats.dns1123_subdomain(name)] if name else []
    if not name:
        causes.append(required(f"{field}.name"))
    elif not causes and name.count(".") < 2:
        causes.append(
            invalid(f"{field}.name", name, "should be a domain with at least three segments separated by dots")
        )
    for index, rule in enumerate(webhook.get("rules") or ()):
        causes += _validate_rule(rule, f"{field}.rules[{index}]")
    causes += one_of(f"{field}.failurePolicy", webhook.get("failurePolicy"), _FAILURE_POLICIES)
    causes += one_of(f"{field}.matchPolicy", webhook.get("matchPolicy"), _MATCH_POLICIES)
    causes += one_of(f"{field}.reinvocationPolicy", webhook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    if webhook.get("sideEffects") is None:
        causes.append(required(f"{field}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    causes += one_of(f"{field}.sideEffects", webhook.get("sideEffects"), _SIDE_EFFECTS)
    timeout_s = webhook.get("timeoutSeconds", 10)
    if not 1 <= timeout_s <= 30:
        causes.append(
            invalid(f"{field}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
        )
    causes += _validate_selectors(webhook, field)
    causes += validate_client_config(webhook.get("clientConfig") or {}, f"{field}.clientConfig")
    causes += _validate_conditions(webhook.get("matchConditions"), environment(), f"{field}.matchConditions")
    return causes + _validate_versions(webhook.get("admissionReviewVersions") or (), f"{field}.admissionReviewVersions")


def _validate_versions(versions: Iterable[str], field: str) -> Causes:
    causes: Causes = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            causes.append(invalid(f"{field}[{index}]", version, "duplicate version"))
        causes += [invalid(f"{field}[{index}]", version, text) for text in nameformats.dns1035_label(version)]
        seen.add(version)
    if not seen:
        causes.append(required(field, "must specify one of v1, v1beta1"))
    elif not seen & {"v1", "v1beta1"} and not causes:
        causes.append(invalid(field, list(seen), "must include at least one of v1, v1beta1"))
    return causes


def _validate_match_resources(resources: Fields, field: str) -> Causes:
    causes = one_of(f"{field}.matchPolicy", resources.get("matchPolicy"), _MATCH_POLICIES)
    causes += _validate_selectors(resources, field)
    for part in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(resources.get(part) or ()):
            at = f"{field}.{part}[{index}]"
            seen: set[str] = set()
            for position, name in enumerate(rule.get("resourceNames") or ()):
                problems = nameformats.path_segment(name)
                causes += validate_unique(f"{at}.resourceNames[{position}]", name, problems, seen)
            causes += _validate_rule(rule, at)
    return causes


def _validate_selectors(owner: Fields, field: str) -> Causes:
    return [
        problem
        for name in ("namespaceSelector", "objectSelector")
        for problem in validate_label_selector(owner.get(name) or {}, f"{field}.{name}")
    ]


def _validate_rule(rule: Fields, field: str) -> Causes:
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


def _validate_conditions(conditions: Any, environment: Environment, field: str) -> Causes:
    causes: Causes = []
    listed = conditions or ()
    if len(listed) > _CONDITIONS_MAX:
        text = f"Too many: {len(listed)}: must have at most {_CONDITIONS_MAX} items"
        causes.append(cause("FieldValueTooMany", text, field))
    seen: set[str] = set()
    for index, condition in enumerate(listed):
        at, name = f"{field}[{index}]", condition.get("name") or ""
        text = (condition.get("expression") or "").strip()
        causes += (
            _validate_expression(text, environment, f"{at}.expression", "BOOL")
            if text
            else [required(f"{at}.expression")]
        )
        if not name:
            causes.append(required(f"{at}.name"))
        else:
            causes += validate_unique(f"{at}.name", name, nameformats.qualified_name(name), seen)
    return causes


def _validate_variable(variable: Fields, expressions: Environment, messages: Environment, field: str) -> Causes:
    name, text = (variable.get("name") or "").strip(), variable.get("expression") or ""
    causes: Causes = []
    if not name:
        causes.append(required(f"{field}.name", "name is not specified"))
    elif not re.fullmatch(r"[_a-zA-Z]\w*", name, re.ASCII) or name in RESERVED_WORDS:
        causes.append(invalid(f"{field}.name", variable["name"], "must be a valid CEL identifier"))
    if not text.strip():
        return [*causes, required(f"{field}.expression", "expression is not specified")]
    for known in (messages, expressions):
        try:
            known.add_variable(name, text)
        except CompileError as error:
            if known is expressions:
                causes.append(invalid(f"{field}.expression", text, str(error)))
    return causes


def _validate_validation(validation: Fields, expressions: Environment, messages: Environment, field: str) -> Causes:
    text, message = validation.get("expression") or "", validation.get("message") or ""
    computed = validation.get("messageExpression") or ""
    if text.strip():
        causes = _validate_expression(text, expressions, f"{field}.expression", "BOOL")
    else:
        causes = [required(f"{field}.expression", "expression is not specified")]
    if computed and not computed.strip():
        causes.append(invalid(f"{field}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        causes += _validate_expression(computed, messages, f"{field}.messageExpression", "STRING")
    if message and not message.strip():
        causes.append(invalid(f"{field}.message", message, "message must be non-empty if specified"))
    elif re.search(r"[\n\r]", message.strip()):
        causes.append(invalid(f"{field}.message", message, "message must not contain line breaks"))
    return causes + one_of(f"{field}.reason", validation.get("reason"), _REASONS)


def _validate_annotations(name: str, annotations: Any, expressions: Environment) -> Causes:
    field = "spec.auditAnnotations"
    causes: Causes = []
    if len(annotations) > _ANNOTATIONS_MAX:
        text = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
        causes.append(invalid(field, list(annotations), text))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        at, key = f"{field}[{index}]", annotation.get("key") or ""
        text = (annotation.get("valueExpression") or "").strip()
        causes += [
            invalid(f"{at}.key", f"{name}/{key}", problem) for problem in nameformats.qualified_name(f"{name}/{key}")
        ]
        if not text:
            causes.append(required(f"{at}.valueExpression", "valueExpression is not specified"))
        elif len(text) > _VALUE_EXPRESSION_BYTES_MAX:
            limit = f"must not exceed {_VALUE_EXPRESSION_BYTES_MAX} bytes in length"
            causes.append(required(f"{at}.valueExpression", limit))
        else:
            causes += _validate_expression(text, expressions, f"{at}.valueExpression", "STRING", "NULL")
        if key in seen:
            causes.append(duplicate(f"{at}.key", key))
        seen.add(key)
    return causes


def _validate_param_kind(kind: Fields, field: str) -> Causes:
    api_version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    causes: Causes = []
    if not api_version:
        causes.append(required(f"{field}.apiVersion"))
    elif api_version.count("/") > 1:
        text = f"unexpected GroupVersion string: {api_version}"
        causes.append(invalid(f"{field}.apiVersion", api_version, text))
    else:
        group, _, version = api_version.rpartition("/")
        if group and (problems := nameformats.dns1123_subdomain(group)):
            causes.append(invalid(f"{field}.apiVersion", group, ",".join(problems)))
        if not version:
            causes.append(invalid(f"{field}.apiVersion", api_version, "version must be specified"))
        elif problems := nameformats.dns1035_label(version):
            causes.append(invalid(f"{field}.apiVersion", version, ",".join(problems)))
    if not name:
        causes.append(required(f"{field}.kind"))
    elif problems := nameformats.dns1035_label(name.lower()):
        text = "may have mixed case, but should otherwise match: " + ",".join(problems)
        causes.append(invalid(f"{field}.kind", name, text))
    return causes


def _validate_param_ref(reference: Fields, field: str) -> Causes:
    name, selector = reference.get("name") or "", reference.get("selector")
    causes: Causes = []
    if name:
        causes += [invalid(f"{field}.name", name, text) for text in nameformats.path_segment(name)]
        if selector is not None:
            causes.append(forbidden(f"{field}.name", _EXCLUSIVE_REFERENCES))
    if selector is not None:
        causes += validate_label_selector(selector, f"{field}.selector")
        if name:
            causes.append(forbidden(f"{field}.selector", _EXCLUSIVE_REFERENCES))
    if not name and selector is None:
        causes.append(required(field, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        return [*causes, required(f"{field}.parameterNotFoundAction")]
    return causes + one_of(f"{field}.parameterNotFoundAction", action, ("Allow", "Deny"))


def _validate_actions(actions: Iterable[str], field: str) -> Causes:
    causes: Causes = []
    seen: list[str] = []
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            causes.append(not_supported(f"{field}[{index}]", action, _ACTIONS))
        if action in seen:
            causes.append(duplicate(f"{field}[{index}]", action))
        seen.append(action)
    if {"Deny", "Warn"} <= set(seen):
        causes.append(invalid(field, seen, _DENY_AND_WARN))
    if not seen:
        causes.append(required(field, "at least one validation action is required"))
    return causes


def _validate_expression(text: str, environment: Environment, field: str, *returns: str) -> Causes:
    try:
        environment.compile(text, returns)
    except CompileError as error:
        return [invalid(field, text, str(error))]
    return []
