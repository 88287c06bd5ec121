"""Validate ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings."""

import re
from collections.abc import Iterable
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, one_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.checkedexpr import RESERVED_WORDS
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.patchtypes import JSON_PATCH_LIST, OBJECT
from federation.apiserver.semantics.cel.programs import CompileError
from federation.apiserver.semantics.validation.matchvalidation import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    Fields,
    validate_conditions,
    validate_expression,
    validate_match_resources,
)
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

_ANNOTATIONS_MAX: Final = 20
_VALUE_EXPRESSION_BYTES_MAX: Final = 5 * 1024
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_NO_VALIDATIONS: Final = "validations or auditAnnotations must contain at least one item"
_DENY_AND_WARN: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and"
    " headers serves no purpose)"
)
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_PATCHES: Final = {
    "ApplyConfiguration": ("applyConfiguration", "jsonPatch", OBJECT),
    "JSONPatch": ("jsonPatch", "applyConfiguration", JSON_PATCH_LIST),
}
"""The field of each patch type, the field that it excludes, and the type of its expression."""
_EXCLUSIVE_REFERENCES: Final = "name and selector are mutually exclusive"


def validate_policy(obj: Object) -> Causes:
    """Validate a ValidatingAdmissionPolicy with defaults."""
    spec = obj.get("spec") or {}
    causes = _validate_definition(spec)
    expressions, messages = _environments(spec)
    causes += validate_conditions(spec.get("matchConditions"), expressions, "spec.matchConditions")
    causes += _validate_variables(spec, expressions, messages)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        causes += [required("spec.validations", _NO_VALIDATIONS), required("spec.auditAnnotations", _NO_VALIDATIONS)]
    for index, validation in enumerate(validations):
        causes += _validate_validation(validation, expressions, messages, f"spec.validations[{index}]")
    return causes + _validate_annotations(obj["metadata"].get("name") or "", annotations, expressions)


def validate_mutating_policy(obj: Object) -> Causes:
    """Validate a MutatingAdmissionPolicy with defaults."""
    spec = obj.get("spec") or {}
    causes = _validate_definition(spec)
    causes += _validate_operations(spec.get("matchConstraints"), "spec.matchConstraints")
    expressions, _ = _environments(spec)
    causes += validate_conditions(spec.get("matchConditions"), expressions, "spec.matchConditions")
    causes += _validate_variables(spec, expressions)
    mutations = spec.get("mutations") or ()
    if not mutations:
        causes.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        causes += _validate_mutation(mutation, expressions, f"spec.mutations[{index}]")
    policy = spec.get("reinvocationPolicy")
    if not policy:
        return [*causes, required("spec.reinvocationPolicy")]
    return causes + one_of("spec.reinvocationPolicy", policy, REINVOCATION_POLICIES)


def validate_binding(obj: Object) -> Causes:
    """Validate a ValidatingAdmissionPolicyBinding with defaults."""
    spec = obj.get("spec") or {}
    # Kubernetes misspells this path, and tools may compare texts.
    causes = _validate_reference(spec, "spec.matchResouces")
    return causes + _validate_actions(spec.get("validationActions") or (), "spec.validationActions")


def validate_mutating_binding(obj: Object) -> Causes:
    """Validate a MutatingAdmissionPolicyBinding with defaults."""
    spec = obj.get("spec") or {}
    causes = _validate_reference(spec, "spec.matchResources")
    return causes + _validate_operations(spec.get("matchResources"), "spec.matchResources")


def _validate_definition(spec: Fields) -> Causes:
    """Validate what policies of both kinds have before their expressions."""
    policy = spec.get("failurePolicy")
    causes = one_of("spec.failurePolicy", policy, FAILURE_POLICIES)
    if spec.get("paramKind") is not None:
        causes += _validate_param_kind(spec["paramKind"], "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        return [*causes, required("spec.matchConstraints")]
    causes += validate_match_resources(constraints, "spec.matchConstraints")
    if not constraints.get("resourceRules"):
        causes.append(required("spec.matchConstraints.resourceRules"))
    return causes


def _validate_operations(resources: Fields | None, field: str) -> Causes:
    """Require that rules name no deletions, which have no object to change."""
    return [
        not_supported(f"{field}.resourceRules.operations", operation, _MUTATING_OPERATIONS)
        for rule in (resources or {}).get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in _MUTATING_OPERATIONS
    ]


def _environments(spec: Fields) -> tuple[Environment, Environment]:
    """Return the environments of the policy's expressions and of its message expressions, without its variables."""
    has_params = bool(spec.get("paramKind"))
    expressions = environment(has_params=has_params, is_new=True)
    return expressions, environment(has_params=has_params, has_authorizer=False, is_new=True)


def _validate_variables(spec: Fields, expressions: Environment, *others: Environment) -> Causes:
    return [
        problem
        for index, variable in enumerate(spec.get("variables") or ())
        for problem in _validate_variable(variable, expressions, others, f"spec.variables[{index}]")
    ]


def _validate_mutation(mutation: Fields, expressions: Environment, field: str) -> Causes:
    type_ = mutation.get("patchType") or ""
    if not type_:
        return [required(f"{field}.patchType")]
    if type_ not in _PATCHES:
        return [not_supported(f"{field}.patchType", type_, _PATCHES)]
    own, other, returns = _PATCHES[type_]
    causes: Causes = []
    patch = mutation.get(own)
    if patch is None:
        causes.append(required(f"{field}.{own}", f"must be specified when patchType is {type_}"))
    elif text := (patch.get("expression") or "").strip():
        try:
            expressions.compile_patch(text, returns)
        except CompileError as error:
            causes.append(invalid(f"{field}.{own}.expression", text, str(error)))
    else:
        causes.append(required(f"{field}.{own}.expression"))
    if mutation.get(other) is not None:
        text = f"must not be specified when patchType is {type_}"
        causes.append(invalid(f"{field}.{other}", f"{{{other}}}", text))
    return causes


def _validate_reference(spec: Fields, resources_field: str) -> Causes:
    """Validate what bindings of both kinds have."""
    name = spec.get("policyName") or ""
    causes: Causes = []
    if not name:
        causes.append(required("spec.policyName"))
    else:
        causes += [invalid("spec.policyName", name, text) for text in nameformats.dns1123_subdomain(name)]
    if spec.get("paramRef") is not None:
        causes += _validate_param_ref(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        causes += validate_match_resources(spec["matchResources"], resources_field)
    return causes


def _validate_variable(variable: Fields, expressions: Environment, others: Iterable[Environment], field: str) -> Causes:
    name, text = (variable.get("name") or "").strip(), variable.get("expression") or ""
    causes: Causes = []
    if not name:
        causes.append(required(f"{field}.name", "name is not specified"))
    elif not re.fullmatch(r"[_a-zA-Z]\w*", name, re.ASCII) or name in RESERVED_WORDS:
        causes.append(invalid(f"{field}.name", variable["name"], "must be a valid CEL identifier"))
    if not text.strip():
        return [*causes, required(f"{field}.expression", "expression is not specified")]
    for known in (*others, expressions):
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
        causes = validate_expression(text, expressions, f"{field}.expression", "BOOL")
    else:
        causes = [required(f"{field}.expression", "expression is not specified")]
    if computed and not computed.strip():
        causes.append(invalid(f"{field}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        causes += validate_expression(computed, messages, f"{field}.messageExpression", "STRING")
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
            causes += validate_expression(text, expressions, f"{at}.valueExpression", "STRING", "NULL")
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
