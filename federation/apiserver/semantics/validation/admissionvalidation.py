"""Validate webhook configurations.

`policyvalidation.py` validates admission policies.
"""

from collections.abc import Iterable
from typing import Final

from federation.apimachinery import nameformats
from federation.apimachinery.clientconfig import validate_client_config
from federation.apimachinery.fielderrors import Causes, duplicate, invalid, one_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.validation.matchvalidation import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    Fields,
    validate_conditions,
    validate_rule,
    validate_selectors,
)

_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


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
        causes += validate_rule(rule, f"{field}.rules[{index}]")
    causes += one_of(f"{field}.failurePolicy", webhook.get("failurePolicy"), FAILURE_POLICIES)
    causes += one_of(f"{field}.matchPolicy", webhook.get("matchPolicy"), MATCH_POLICIES)
    causes += one_of(f"{field}.reinvocationPolicy", webhook.get("reinvocationPolicy"), REINVOCATION_POLICIES)
    if webhook.get("sideEffects") is None:
        causes.append(required(f"{field}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    causes += one_of(f"{field}.sideEffects", webhook.get("sideEffects"), _SIDE_EFFECTS)
    timeout_s = webhook.get("timeoutSeconds", 10)
    if not 1 <= timeout_s <= 30:
        causes.append(
            invalid(f"{field}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
        )
    causes += validate_selectors(webhook, field)
    causes += validate_client_config(webhook.get("clientConfig") or {}, f"{field}.clientConfig")
    causes += validate_conditions(webhook.get("matchConditions"), environment(is_new=True), f"{field}.matchConditions")
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
