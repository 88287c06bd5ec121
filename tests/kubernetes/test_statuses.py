"""A real API server accepts every status that is merged from members, whatever they report and in which order.

A refused status would stay at its last value for good: a Job would never end. The histories are those of
`tests/support/statushistories.py`; the merge, and the conditions that the federation adds, are the product's.
"""

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest
from tests.kubernetes.differences.requests import NAMESPACE
from tests.support.rest import Api, Refused
from tests.support.statushistories import REPORTS, histories

from federation.api.federatedtype import FederatedType
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.planning.aggregation.aggregators import merge_of
from federation.planning.aggregation.context import Context
from federation.planning.status.sourceconditions import takes_source_conditions, with_source_conditions

HISTORIES = 25
_POD = {"containers": [{"name": "main", "image": "web:1"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": _POD}
_ONCE = {"spec": {**_POD, "restartPolicy": "Never"}}
_SELECTOR = {"matchLabels": {"app": "x"}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
SPECS: Mapping[str, tuple[str, str, Object]] = {
    "CronJob": ("batch/v1", "cronjobs", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _ONCE}}}),
    "DaemonSet": ("apps/v1", "daemonsets", {"selector": _SELECTOR, "template": _TEMPLATE}),
    "Deployment": ("apps/v1", "deployments", {"selector": _SELECTOR, "template": _TEMPLATE}),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        {"maxReplicas": 5, "scaleTargetRef": _TARGET},
    ),
    "Ingress": ("networking.k8s.io/v1", "ingresses", {"rules": [{"host": "x.example.com"}]}),
    "Job": ("batch/v1", "jobs", {"template": _ONCE}),
    "PersistentVolume": ("v1", "persistentvolumes", _VOLUME),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", _CLAIM),
    "Pod": ("v1", "pods", {**_POD, "restartPolicy": "Never"}),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", {"selector": _SELECTOR, "minAvailable": 1}),
    "ReplicaSet": ("apps/v1", "replicasets", {"selector": _SELECTOR, "template": _TEMPLATE}),
    "Service": ("v1", "services", {"type": "LoadBalancer", "ports": [{"port": 80}]}),
    "StatefulSet": ("apps/v1", "statefulsets", {"selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "x"}),
}


def test_every_kind_with_a_merged_status_is_tried() -> None:
    assert SPECS.keys() == REPORTS.keys()


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_a_real_server_accepts_every_merged_status(servers: tuple[Api, Api], kind: str) -> None:
    for server, api in zip(("real", "ours"), servers, strict=True):
        found = [line for seed in range(HISTORIES) for line in _refusals(api, kind, seed)]
        print(f"{server}: {len(found)} refused")
        assert not found, "\n".join(found[:20])


def _refusals(api: Api, kind: str, seed: int) -> list[str]:
    version, plural, spec = SPECS[kind]
    resource = Resource(
        version.rpartition("/")[0], version.rpartition("/")[2], kind, plural, namespaced=kind != "PersistentVolume"
    )
    at = api.within(NAMESPACE) if resource.namespaced else api
    source = _created(at, resource, spec, f"x-{seed}")
    type_ = FederatedType(f"{plural}", resource, ())
    merge, lines = merge_of(type_), []
    assert merge is not None
    for step, (now, reports, placed) in enumerate(histories(kind, seed)):
        status = _merged(resource, merge, source, reports, placed, now)
        patch = create_merge_patch(source.get("status") or {}, status or {})
        if not status or not patch:
            continue
        try:
            source = at.patch(_path(resource), f"x-{seed}", {"status": patch}, "status")
        except Refused as refused:
            lines.append(f"{kind} {seed}/{step}: {str(refused)[:600]}")
    return lines


def _merged(
    resource: Resource, merge: Any, source: Object, reports: Mapping[str, Object], placed: frozenset[str], now: datetime
) -> Object | None:
    members = {cluster: {"metadata": {}, "status": deepcopy(status)} for cluster, status in reports.items()}
    context = Context(now=now, placed=placed, is_observed=reports.keys() == placed)
    status = merge(source, members, context)
    if status is not None and takes_source_conditions(resource.group, resource.kind):
        entries = [{"cluster": cluster, "status": "OK"} for cluster in sorted(placed)]
        propagated = {"type": "Propagated", "status": "True", "reason": ""}
        federated = {
            "metadata": {},
            "spec": {"template": source},
            "status": {"clusters": entries, "conditions": [propagated]},
        }
        status = with_source_conditions(status, source.get("status") or {}, federated, now)
    return status


def _path(resource: Resource) -> str:
    return f"{resource.api_version}/{resource.plural}" if resource.namespaced else resource.plural


def _created(api: Api, resource: Resource, spec: Object, name: str) -> Object:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    return api.create(_path(resource), body)
