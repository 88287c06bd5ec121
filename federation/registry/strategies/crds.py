"""CustomResourceDefinitions, and the behaviour of the custom resources they define."""

from federation.api.resources import Object
from federation.registry.jsonequality import is_same
from federation.registry.strategies.base import Strategy

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class DefinitionStrategy(Strategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition; `registry/definitions.py` checks, serves and empties it."""

    has_generation = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        found = spec.setdefault("names", {})
        if kind := found.get("kind"):
            found.setdefault("singular", kind.lower())
            found.setdefault("listKind", f"{kind}List")
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        config = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
        if config.get("service") is not None:
            config["service"].setdefault("port", 443)

    def prepare_deletion(self, obj: Object) -> None:
        """Mark the first time: instances go before their definition."""
        conditions = (obj.get("status") or {}).get("conditions") or []
        if any(condition["type"] == "Terminating" for condition in conditions):
            return
        metadata = obj["metadata"]
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP_FINALIZER]
        terminating = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": metadata["deletionTimestamp"],
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        obj["status"] = {**(obj.get("status") or {}), "conditions": [*conditions, terminating]}

    def may_go(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("deletionTimestamp"))


class CustomStrategy(Strategy):
    """Objects of a CustomResourceDefinition: their rules are in its schema."""

    has_generation = True
    allow_unconditional_update = False

    def __init__(self, *, has_status: bool) -> None:
        self._has_status = has_status

    def spec_changed(self, new: Object, old: Object) -> bool:
        if super().spec_changed(new, old):
            return True
        if not self._has_status and not is_same(new.get("status"), old.get("status")):
            return True
        return any(not is_same(value, old.get(key)) for key, value in new.items() if key not in {"metadata", "status"})
