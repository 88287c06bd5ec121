"""Strategies of Namespaces, Nodes, ServiceAccounts, ResourceQuotas and RuntimeClasses."""

from collections.abc import Iterable
from typing import ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, forbidden, immutable, invalid, required
from federation.apimachinery.finalizers import NAMESPACE_CONTENT
from federation.apimachinery.objectmeta import validate_labels
from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import NAMESPACE_NAME_LABEL
from federation.apiserver.semantics.strategies.base import StatusFields, Strategy
from federation.apiserver.semantics.validation.fieldrules import Rule, has_known_finalizers
from federation.apiserver.semantics.validation.kindwarnings import (
    node_warnings,
    quota_warnings,
    runtime_class_warnings,
    service_account_warnings,
)
from federation.apiserver.semantics.validation.nodevalidation import (
    has_amounts,
    has_overhead,
    has_pod_ranges,
    has_tolerations,
)
from federation.apiserver.semantics.validation.quantityvalidation import is_counted, validate_amount
from federation.apiserver.semantics.validation.quotavalidation import validate_scopes
from federation.apiserver.semantics.validation.selectorvalidation import validate_taints

_PROTECTED = frozenset({"default", "kube-system", "kube-public"})


class NamespaceStrategy(Strategy):
    """v1 Namespace: Terminating until `registry/namespaces.py` has deleted its objects."""

    rules = (Rule("spec.finalizers", has_known_finalizers),)

    name_problems = staticmethod(nameformats.dns1123_label)

    def default(self, obj: Object) -> None:
        name = obj["metadata"].get("name")
        if name:
            labels = obj["metadata"].get("labels")
            if labels is None:
                labels = obj["metadata"]["labels"] = {}
            labels[NAMESPACE_NAME_LABEL] = name

    def prepare_create(self, obj: Object) -> None:
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        if NAMESPACE_CONTENT not in finalizers:
            finalizers = [*finalizers, NAMESPACE_CONTENT]
        obj["spec"] = {"finalizers": finalizers}
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, new: Object, old: Object) -> None:
        if "spec" in old:
            new["spec"] = old["spec"]

    def prepare_status_update(self, new: Object, old: Object) -> None:
        del old
        self.default(new)

    def deletion_refusal(self, obj: Object) -> str:
        return "this namespace may not be deleted" if obj["metadata"]["name"] in _PROTECTED else ""

    def prepare_deletion(self, obj: Object) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def is_removable(self, obj: Object) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")


class NodeStrategy(Strategy):
    """v1 Node: a kubelet creates its node with a status."""

    keeps_status_on_create = True
    rules = (
        Rule("spec.podCIDRs", has_pod_ranges),
        Rule("status.capacity", has_amounts),
        Rule("status.allocatable", has_amounts),
    )

    def default(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        # Go has one list of both, of which the old field is the first.
        first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
        if first and not (ranges and ranges[0] == first):
            spec["podCIDRs"] = [first]
        elif ranges and not first:
            spec["podCIDR"] = ranges[0]
        status = obj.get("status")
        if status and status.get("capacity") and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        before = value_at(old, "spec.providerID")
        if before and value_at(new, "spec.providerID") != before:
            text = 'node updates may not change providerID except from "" to valid'
            causes.append(forbidden("spec.providerID", text))
        ranges = value_at(old, "spec.podCIDRs")
        if ranges and value_at(new, "spec.podCIDRs") != ranges:
            text = 'node updates may not change podCIDR except from "" to valid'
            causes.append(forbidden("spec.podCIDRs", text))
        return causes

    def validate(self, obj: Object) -> Causes:
        return validate_taints((obj.get("spec") or {}).get("taints") or (), "metadata.taints")

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return node_warnings(obj)


class ServiceAccountStrategy(Strategy):
    """v1 ServiceAccount."""

    returns_deleted_object = True

    warnings = staticmethod(service_account_warnings)


class ResourceQuotaStrategy(Strategy):
    """v1 ResourceQuota."""

    status_always: ClassVar[StatusFields] = {}
    returns_deleted_object = True
    names_again = False

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        amounts = spec.get("hard") or {}
        causes = [
            found
            for name, amount in amounts.items()
            for found in validate_amount(name, amount, f"spec.hard[{name}]", is_count=is_counted(name))
        ]
        return causes + validate_scopes(spec)

    def validate_update(self, new: Object, old: Object) -> Causes:
        scopes, before = ((obj.get("spec") or {}).get("scopes") or [] for obj in (new, old))
        causes = super().validate_update(new, old)
        return causes + (immutable("spec.scopes", scopes, before) if set(scopes) != set(before) else [])

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return quota_warnings(obj) if old is None else ()


class RuntimeClassStrategy(Strategy):
    """node.k8s.io/v1 RuntimeClass."""

    knows_finalizers = False
    allow_create_on_update = True
    allow_unconditional_update = False
    immutable_fields = ("handler",)
    rules = (
        Rule("overhead.podFixed", has_overhead),
        Rule("scheduling.nodeSelector", validate_labels),
        Rule("scheduling.tolerations", has_tolerations),
    )

    def validate(self, obj: Object) -> Causes:
        handler = obj.get("handler") or ""
        if not handler:
            return [required("handler")]
        return [invalid("handler", handler, text) for text in nameformats.dns1123_label(handler)]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return runtime_class_warnings(obj)
