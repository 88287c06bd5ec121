"""Configurations of admission: webhooks, policies in CEL and their bindings."""

from typing import ClassVar

from federation.api.resources import Object
from federation.registry.defaults import others as defaults
from federation.registry.strategies.base import StatusFields
from federation.registry.strategies.network import GenerationStrategy
from federation.registry.validation import admission as checks
from federation.registry.validation.fields import Causes


class WebhookConfigurationStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 Mutating- and ValidatingWebhookConfiguration."""

    def default(self, obj: Object) -> None:
        defaults.default_webhooks(obj, is_mutating=obj.get("kind", "").startswith("Mutating"))

    def validate(self, obj: Object) -> Causes:
        return checks.validate_webhooks(obj)


class AdmissionPolicyStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy."""

    status_always: ClassVar[StatusFields] = {}

    def default(self, obj: Object) -> None:
        defaults.default_admission_policy(obj)

    def validate(self, obj: Object) -> Causes:
        return checks.validate_policy(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        # Expressions that were accepted once stay, also when this version would not compile them any more.
        return [] if new.get("spec") == old.get("spec") else checks.validate_policy(new)


class AdmissionPolicyBindingStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding."""

    def default(self, obj: Object) -> None:
        defaults.default_admission_binding(obj)

    def validate(self, obj: Object) -> Causes:
        return checks.validate_binding(obj)
