"""CustomResourceDefinitions, and the behaviour of the custom resources they define."""

from typing import Any

from federation.api.resources import Object
from federation.registry.strategies.base import Strategy
from federation.registry.validation import names
from federation.registry.validation.fields import Causes, immutable, invalid, not_supported, required

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES = ("Cluster", "Namespaced")


class DefinitionStrategy(Strategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition; `registry/definitions.py` serves and empties it."""

    has_generation = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        found = spec.setdefault("names", {})
        if kind := found.get("kind"):
            found.setdefault("singular", kind.lower())
            found.setdefault("listKind", f"{kind}List")
        conversion = spec.setdefault("conversion", {})
        conversion.setdefault("strategy", "None")

    def validate(self, obj: Object) -> Causes:
        spec = obj["spec"]
        group, found = spec.get("group") or "", spec["names"]
        plural = found.get("plural") or ""
        causes = [required(f"spec.{field}") for field in ("group", "scope") if not spec.get(field)]
        causes += [required(f"spec.names.{field}") for field in ("plural", "kind") if not found.get(field)]
        if causes:
            return causes
        if obj["metadata"].get("name") != f"{plural}.{group}":
            text = 'must be spec.names.plural+"."+spec.group'
            causes.append(invalid("metadata.name", obj["metadata"].get("name"), text))
        if spec["scope"] not in _SCOPES:
            causes.append(not_supported("spec.scope", spec["scope"], _SCOPES))
        if "." not in group:
            causes.append(invalid("spec.group", group, "should be a domain with at least one dot"))
        for field in ("plural", "singular"):
            causes += [invalid(f"spec.names.{field}", found[field], text) for text in names.dns1035_label(found[field])]
        if spec["conversion"]["strategy"] != "None":
            # A Webhook converter would have to be called for every object that is read in another version.
            causes.append(not_supported("spec.conversion.strategy", spec["conversion"]["strategy"], ("None",)))
        return causes + _validate_versions(spec.get("versions") or [])

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        for field in ("group", "scope"):
            causes += immutable(f"spec.{field}", new["spec"].get(field), old["spec"].get(field))
        for field in ("plural", "kind"):
            causes += immutable(f"spec.names.{field}", new["spec"]["names"].get(field), old["spec"]["names"].get(field))
        return causes

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
        return not self._has_status and new.get("status") != old.get("status")


def _validate_columns(columns: list[dict[str, Any]], at: str) -> Causes:
    return [
        required(f"{at}.additionalPrinterColumns[{index}].{field}")
        for index, column in enumerate(columns)
        for field in ("name", "type", "jsonPath")
        if not column.get(field)
    ]


def _validate_versions(versions: list[dict[str, Any]]) -> Causes:
    if not versions:
        return [required("spec.versions")]
    causes: Causes = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        name = version.get("name") or ""
        at = f"spec.versions[{index}]"
        causes += [invalid(f"{at}.name", name, text) for text in names.dns1035_label(name)]
        if name in seen:
            causes.append(invalid("spec.versions", name, "must contain unique version names"))
        seen.add(name)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            causes.append(required(f"{at}.schema.openAPIV3Schema", "schemas are required"))
        causes += _validate_columns(version.get("additionalPrinterColumns") or [], at)
        if (scale := (version.get("subresources") or {}).get("scale")) is not None:
            paths = ("specReplicasPath", "statusReplicasPath")
            causes += [required(f"{at}.subresources.scale.{path}") for path in paths if not scale.get(path)]
    if sum(bool(version.get("storage")) for version in versions) != 1:
        causes.append(invalid("spec.versions", [], "must have exactly one version marked as storage version"))
    return causes
