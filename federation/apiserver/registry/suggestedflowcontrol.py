"""The FlowSchemas and PriorityLevelConfigurations that divide this server's seats unless an administrator changes them.

kube-apiserver creates suggested objects of the same purpose. There are fewer levels here, because a level does not lend
its free seats to others. `flowcontrolobjects.py` creates the objects.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.flowcontrolvalidation import MANDATORY

SYSTEM, CONTROLLERS, WORKLOADS = "system", "controllers", "workloads"
_USER_NAMESPACES: Final = {"default", "kube-public", "kube-node-lease"}
_MANAGERS: Final = ("system:kube-controller-manager", "system:kube-scheduler")
_ALL_RESOURCES: Final = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_ELECTIONS: Final = {
    "verbs": ["get", "create", "update", "patch"],
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "namespaces": ["*"],
}
Specs = dict[str, dict[str, Object]]


def flow_control_specs(system_namespaces: Iterable[str]) -> Specs:
    """Return the specs of the mandatory and the suggested objects by kind and name.

    Service accounts of the `system_namespaces` are controllers, except of those in which users work.
    """
    namespaces = [name for name in system_namespaces if name not in _USER_NAMESPACES]
    accounts = [
        {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": namespace}} for namespace in namespaces
    ]
    managers = [{"kind": "User", "user": {"name": name}} for name in _MANAGERS]
    schemas = {
        "system-leader-election": _schema(SYSTEM, 100, [*managers, _group("system:serviceaccounts")], _ELECTIONS),
        "system-nodes": _schema(SYSTEM, 500, [_group("system:nodes")]),
        "system-controllers": _schema(CONTROLLERS, 900, [*managers, *accounts]),
        "workloads": _schema(WORKLOADS, 9900, [_group("system:authenticated")]),
    }
    levels = {SYSTEM: _level(80), CONTROLLERS: _level(40), WORKLOADS: _level(120)}
    return {
        "PriorityLevelConfiguration": {**MANDATORY["PriorityLevelConfiguration"], **levels},
        "FlowSchema": {**MANDATORY["FlowSchema"], **schemas},
    }


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _schema(
    level: str, precedence: int, subjects: list[Object], resources: Mapping[str, Any] = _ALL_RESOURCES
) -> Object:
    rule: Object = {"subjects": subjects, "resourceRules": [dict(resources)]}
    if resources is _ALL_RESOURCES:
        rule["nonResourceRules"] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [rule],
    }


def _level(shares: int) -> Object:
    queuing = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
    return {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": shares,
            "limitResponse": {"type": "Queue", "queuing": queuing},
            "lendablePercent": 0,
        },
    }
