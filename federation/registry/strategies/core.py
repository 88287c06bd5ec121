"""Namespaces, Nodes, ServiceAccounts and ResourceQuotas."""

from typing import ClassVar

from federation.api.resources import Object
from federation.registry.strategies.base import StatusFields, Strategy, dig
from federation.registry.validation import names
from federation.registry.validation.fields import Causes, immutable

NAMESPACE_FINALIZER = "kubernetes"
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """v1 Namespace: stays Terminating until `registry/namespaces.py` has emptied it."""

    def name_problems(self, name: str) -> list[str]:
        return names.dns1123_label(name)

    def default(self, obj: Object) -> None:
        name = obj["metadata"].get("name")
        if name:
            labels = obj["metadata"].get("labels")
            if labels is None:
                labels = obj["metadata"]["labels"] = {}
            labels[_NAME_LABEL] = name

    def prepare_create(self, obj: Object) -> None:
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        if NAMESPACE_FINALIZER not in finalizers:
            finalizers = [*finalizers, NAMESPACE_FINALIZER]
        obj["spec"] = {"finalizers": finalizers}
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, new: Object, old: Object) -> None:
        if "spec" in old:
            new["spec"] = old["spec"]

    def deletion_refusal(self, obj: Object) -> str:
        return "this namespace may not be deleted" if obj["metadata"]["name"] in _IMMORTAL else ""

    def prepare_deletion(self, obj: Object) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def may_go(self, obj: Object) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")


class NodeStrategy(Strategy):
    """v1 Node. A kubelet registers its node with the status that it has."""

    keeps_status_on_create = True

    def validate_update(self, new: Object, old: Object) -> Causes:
        if dig(old, "spec.podCIDR"):
            return immutable("spec.podCIDR", dig(new, "spec.podCIDR"), dig(old, "spec.podCIDR"))
        return []


class ServiceAccountStrategy(Strategy):
    """v1 ServiceAccount."""

    returns_deleted_object = True


class ResourceQuotaStrategy(Strategy):
    """v1 ResourceQuota."""

    status_always: ClassVar[StatusFields] = {}
    returns_deleted_object = True
