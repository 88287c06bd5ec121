"""Strategies of CustomResourceDefinitions and of custom resources."""

from federation.apimachinery import conditions
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.finalizers import DEFINITION_CLEANUP
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import GenerationStrategy
from federation.apiserver.semantics.validation.kindwarnings import finalizer_warnings


class CustomResourceDefinitionStrategy(GenerationStrategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition; `registry/crdcontroller.py` validates it."""

    names_again = False
    knows_finalizers = False
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if kind := names.get("kind"):
            names.setdefault("singular", kind.lower())
            names.setdefault("listKind", f"{kind}List")
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        config = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
        if config.get("service") is not None:
            config["service"].setdefault("port", 443)

    def prepare_deletion(self, obj: Object) -> None:
        """Add the cleanup finalizer, so that custom resources are deleted before their CRD.

        Conditions do not decide about it: a client can write them, and the custom resources would stay in the store.
        """
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if DEFINITION_CLEANUP not in finalizers:
            metadata["finalizers"] = [*finalizers, DEFINITION_CLEANUP]
        existing = (obj.get("status") or {}).get("conditions") or []
        if conditions.is_true(existing, "Terminating"):
            return
        terminating = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": metadata["deletionTimestamp"],
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        obj["status"] = {
            **(obj.get("status") or {}),
            "conditions": [*conditions.remove(existing, "Terminating"), terminating],
        }

    def is_removable(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("deletionTimestamp"))


class CustomResourceStrategy(GenerationStrategy):
    """Custom resources; the schema of their CRD has the defaults and validation."""

    allow_unconditional_update = False
    knows_finalizers = False

    def __init__(self, *, has_status: bool) -> None:
        self._has_status = has_status

    def has_spec_changed(self, new: Object, old: Object) -> bool:
        if super().has_spec_changed(new, old):
            return True
        if not self._has_status and not is_json_equal(new.get("status"), old.get("status")):
            return True
        return any(
            not is_json_equal(value, old.get(key)) for key, value in new.items() if key not in {"metadata", "status"}
        )

    warnings = staticmethod(finalizer_warnings)
