"""Strategies of webhook configurations, ValidatingAdmissionPolicies and their bindings."""

from typing import ClassVar

from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import GenerationStrategy, StatusFields
from federation.apiserver.semantics.validation import admissionvalidation as validation


class WebhookConfigurationStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 Mutating- and ValidatingWebhookConfiguration."""

    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        defaults.default_webhooks(obj, is_mutating=obj.get("kind", "").startswith("Mutating"))

    def validate(self, obj: Object) -> Causes:
        return validation.validate_webhooks(obj)


class AdmissionPolicyStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy."""

    allow_unconditional_update = False
    status_always: ClassVar[StatusFields] = {}

    def default(self, obj: Object) -> None:
        defaults.default_admission_policy(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_policy(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        # Unchanged expressions stay valid even if this version no longer compiles them (ratcheting).
        return [] if new.get("spec") == old.get("spec") else validation.validate_policy(new)


class AdmissionPolicyBindingStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding."""

    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        defaults.default_admission_binding(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_binding(obj)
