"""Strategies of webhook configurations, admission policies and their bindings."""

from typing import ClassVar

from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import USER_METADATA, GenerationStrategy, StatusFields
from federation.apiserver.semantics.validation import admissionvalidation, policyvalidation


class WebhookConfigurationStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 Mutating- and ValidatingWebhookConfiguration."""

    knows_finalizers = False
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        defaults.default_webhooks(obj, is_mutating=obj.get("kind", "").startswith("Mutating"))

    validate = staticmethod(admissionvalidation.validate_webhooks)


class AdmissionPolicyStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy."""

    knows_finalizers = False
    status_resets = USER_METADATA

    allow_unconditional_update = False
    status_always: ClassVar[StatusFields] = {}

    default = staticmethod(defaults.default_admission_policy)
    validate = staticmethod(policyvalidation.validate_policy)

    def validate_update(self, new: Object, old: Object) -> Causes:
        # Unchanged expressions stay valid even if this version no longer compiles them (ratcheting).
        return [] if new.get("spec") == old.get("spec") else policyvalidation.validate_policy(new)


class AdmissionPolicyBindingStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding."""

    knows_finalizers = False
    allow_unconditional_update = False

    default = staticmethod(defaults.default_admission_binding)
    validate = staticmethod(policyvalidation.validate_binding)


class MutatingAdmissionPolicyStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 MutatingAdmissionPolicy."""

    knows_finalizers = False
    allow_unconditional_update = False

    default = staticmethod(defaults.default_admission_policy)
    validate = staticmethod(policyvalidation.validate_mutating_policy)

    def validate_update(self, new: Object, old: Object) -> Causes:
        # Unchanged expressions stay valid, as for a ValidatingAdmissionPolicy.
        return [] if new.get("spec") == old.get("spec") else policyvalidation.validate_mutating_policy(new)


class MutatingAdmissionPolicyBindingStrategy(GenerationStrategy):
    """admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding."""

    knows_finalizers = False
    allow_unconditional_update = False

    default = staticmethod(defaults.default_admission_binding)
    validate = staticmethod(policyvalidation.validate_mutating_binding)
