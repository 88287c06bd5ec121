"""Decide whether a source object is federated (docs/decisions/0002-what-is-federated.md). Pure."""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.resources import CORE_GROUP, UNITED_DEPLOYMENTS
from federation.apimachinery import wellknown
from federation.apimachinery.ownerreferences import controller_of
from federation.planning.federatedobject.hosteffect import is_servers_own
from federation.planning.federatedobject.names import BOOTSTRAPPING_LABEL, DEFAULT_SERVICE_ACCOUNT, ROOT_CA_CONFIGMAP

_PROPAGATION_LABELS = (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)


def exclusion(source: Mapping[str, Any]) -> str:
    """Return why the object is not federated, "" when it is."""
    metadata = source["metadata"]
    if (metadata.get("annotations") or {}).get(names.NO_FEDERATED_RESOURCE):
        return f"it has the annotation {names.NO_FEDERATED_RESOURCE}"
    kind, name = source.get("kind", ""), metadata.get("name", "")
    labels = metadata.get("labels") or {}
    namespace = name if kind == "Namespace" else metadata.get("namespace", "")
    is_chosen = kind != "Namespace" and any(label in labels for label in _PROPAGATION_LABELS)
    if namespace == names.SYSTEM_NAMESPACE or (namespace.startswith("kube-") and kind == "Namespace"):
        return "its namespace belongs to the system"
    if namespace.startswith("kube-") and not is_chosen:
        return "its namespace belongs to the system, so only a label with the name of a policy delivers it"
    if kind == "HorizontalPodAutoscaler" and labels.get(names.HPA_MODE) == names.HPA_CENTRALIZED:
        return "it acts on the host"
    if BOOTSTRAPPING_LABEL in labels or _is_made_by_kubernetes(source, kind, namespace, name):
        return "every Kubernetes cluster makes its own"
    if _has_controller_of_cluster(source) and not is_chosen:
        return "another object's controller makes it"
    return ""


def _has_controller_of_cluster(source: Mapping[str, Any]) -> bool:
    """Return whether a controller makes the object in each cluster; those of UnitedDeployments are made here."""
    controller = controller_of(source)
    if controller is None:
        return False
    group = str(controller.get("apiVersion") or "").partition("/")[0]
    return (group, controller.get("kind")) != (UNITED_DEPLOYMENTS.group, UNITED_DEPLOYMENTS.kind)


def _is_made_by_kubernetes(source: Mapping[str, Any], kind: str, namespace: str, name: str) -> bool:
    match kind:
        case "ConfigMap":
            return name == ROOT_CA_CONFIGMAP
        case "ServiceAccount":
            return name == DEFAULT_SERVICE_ACCOUNT
        case "Secret":
            return source.get("type") == wellknown.SERVICE_ACCOUNT_TOKEN_TYPE
        case "Service" | "EndpointSlice":
            return (namespace, name) == ("default", "kubernetes")
        case "CustomResourceDefinition":
            return (source.get("spec") or {}).get("group") == CORE_GROUP
        case "PriorityClass":
            return name.startswith("system-")
        case _:
            return is_servers_own(str(source.get("apiVersion", "")).rpartition("/")[0], kind, source)
