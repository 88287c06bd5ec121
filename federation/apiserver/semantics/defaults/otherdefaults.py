"""Defaults of kinds without pod templates: services, storage, policies, RBAC, admission."""

from typing import Any

from federation.apiserver.semantics.defaults.poddefaults import fill

Fields = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"


def default_service(obj: Fields) -> None:
    """Fill a Service except its families (`servicefamilies.py`) and addresses (`registry/serviceaddresses.py`)."""
    spec = obj.setdefault("spec", {})
    fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        fill(client, timeoutSeconds=10800)
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP")
        if port.get("targetPort") in {None, "", 0}:
            port["targetPort"] = port.get("port")
    if spec["type"] == "ExternalName":
        return
    fill(spec, internalTrafficPolicy="Cluster")
    if not spec.get("healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if spec["type"] in {"NodePort", "LoadBalancer"} or spec.get("externalIPs"):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)


def default_endpoints(obj: Fields) -> None:
    """Fill Endpoints."""
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill(port, protocol="TCP")


def default_endpoint_slice(obj: Fields) -> None:
    """Fill an EndpointSlice."""
    for port in obj.get("ports") or ():
        fill(port, name="", protocol="TCP")


def default_network_policy(obj: Fields) -> None:
    """Fill a NetworkPolicy; its type includes Egress only if it has egress rules."""
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            fill(port, protocol="TCP")


def default_claim(obj: Fields) -> None:
    """Fill a PersistentVolumeClaim: its two fields for a data source contain the same."""
    spec = obj.setdefault("spec", {})
    fill(spec, volumeMode="Filesystem")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None and not _is_old_source(source):
        # Kubernetes drops it, because a server before dataSourceRef ignored it.
        source = None
        del spec["dataSource"]
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _is_old_source(source: Fields) -> bool:
    """Return True for the data sources that a claim could have before `dataSourceRef`."""
    return (source.get("apiGroup") or "", source.get("kind")) in {
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    }


def default_volume(obj: Fields) -> None:
    """Fill a PersistentVolume."""
    spec = obj.setdefault("spec", {})
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if (path := spec.get("hostPath")) is not None:
        fill(path, type="")


def default_storage_class(obj: Fields) -> None:
    """Fill a StorageClass."""
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def default_driver(obj: Fields) -> None:
    """Fill a CSIDriver."""
    spec = obj.setdefault("spec", {})
    fill(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType", seLinuxMount=False)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_flow_schema(obj: Fields) -> None:
    """Fill a FlowSchema."""
    spec = obj.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def default_priority_level(obj: Fields) -> None:
    """Fill a PriorityLevelConfiguration."""
    spec = obj.setdefault("spec", {})
    if (exempt := spec.get("exempt")) is not None:
        fill(exempt, nominalConcurrencyShares=0, lendablePercent=0)
    if (limited := spec.get("limited")) is not None:
        fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
        if (queuing := limited.setdefault("limitResponse", {}).get("queuing")) is not None:
            for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or value


def default_autoscaler(obj: Fields) -> None:
    """Fill a HorizontalPodAutoscaler; the default metric is 80 % of the requested CPU."""
    spec = obj.setdefault("spec", {})
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up, down = behavior.setdefault("scaleUp", {}), behavior.setdefault("scaleDown", {})
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        fill(down, selectPolicy="Max")
        if up.get("policies") is None:
            up["policies"] = [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]
        if down.get("policies") is None:
            down["policies"] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def default_role_binding(obj: Fields) -> None:
    """Fill a RoleBinding or ClusterRoleBinding."""
    if isinstance(reference := obj.get("roleRef"), dict) and not reference.get("apiGroup"):
        reference["apiGroup"] = RBAC_GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            fill(subject, apiGroup=RBAC_GROUP)


def default_priority_class(obj: Fields) -> None:
    """Fill a PriorityClass."""
    fill(obj, preemptionPolicy="PreemptLowerPriority", value=0)


def default_webhooks(obj: Fields, *, is_mutating: bool) -> None:
    """Fill the webhooks of an admission configuration."""
    for webhook in obj.get("webhooks") or ():
        fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        if is_mutating:
            fill(webhook, reinvocationPolicy="Never")
        for selector in ("namespaceSelector", "objectSelector"):
            webhook.setdefault(selector, {})
        for rule in webhook.get("rules") or ():
            fill(rule, scope="*")
        if service := (webhook.get("clientConfig") or {}).get("service"):
            fill(service, port=443)


def default_admission_policy(obj: Fields) -> None:
    """Fill a Validating- or MutatingAdmissionPolicy."""
    spec = obj.setdefault("spec", {})
    fill(spec, failurePolicy="Fail")
    if isinstance(spec.get("matchConstraints"), dict):
        _default_match_resources(spec["matchConstraints"])


def default_admission_binding(obj: Fields) -> None:
    """Fill the binding of an admission policy."""
    spec = obj.setdefault("spec", {})
    if isinstance(spec.get("matchResources"), dict):
        _default_match_resources(spec["matchResources"])


def _default_match_resources(resources: Fields) -> None:
    fill(resources, matchPolicy="Equivalent")
    for selector in ("namespaceSelector", "objectSelector"):
        resources.setdefault(selector, {})
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in resources.get(rules) or ():
            fill(rule, scope="*")
