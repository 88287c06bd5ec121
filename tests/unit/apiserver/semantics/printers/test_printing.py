"""Printer columns and cells, as in kube-apiserver."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from federation.apimachinery import jsonpath
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import KindInfo, PrinterColumn
from federation.apiserver.semantics.printers.printing import to_table
from federation.apiserver.semantics.printers.table import human_duration

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
INFOS = {info.resource.plural: info for info in builtin_kinds()}


def cells(plural: str, obj: dict[str, Any]) -> list[Any]:
    obj.setdefault("metadata", {}).setdefault("name", "n")
    obj["metadata"].setdefault("creationTimestamp", "2026-01-01T00:55:00Z")
    table = to_table(INFOS[plural], [orjson.dumps(obj)], now=NOW)
    (row,) = table["rows"]
    assert len(row["cells"]) == len(table["columnDefinitions"])
    return row["cells"]


def titles(plural: str) -> list[str]:
    return [column["name"] for column in to_table(INFOS[plural], [], now=NOW)["columnDefinitions"]]


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}


def test_deployment_cells() -> None:
    obj = {
        "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
    }
    assert cells("deployments", obj) == ["n", "2/3", 3, 1, "5m", "a,b", "i:1,j:2", "app=web"]
    assert titles("deployments") == [
        "Name",
        "Ready",
        "Up-to-date",
        "Available",
        "Age",
        "Containers",
        "Images",
        "Selector",
    ]


def test_wide_columns_have_a_priority() -> None:
    columns = to_table(INFOS["deployments"], [], now=NOW)["columnDefinitions"]
    assert [column["name"] for column in columns if column["priority"]] == ["Containers", "Images", "Selector"]
    assert columns[0]["format"] == "name"


@pytest.mark.parametrize(
    ("plural", "obj", "expected"),
    [
        ("replicasets", {"spec": {"replicas": 2, "selector": SELECTOR}}, ["n", 2, 0, 0, "5m", "", "", "app=web"]),
        ("statefulsets", {"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}, ["n", "1/2", "5m", "", ""]),
        (
            "daemonsets",
            {
                "spec": {"selector": SELECTOR, "template": {"spec": {"nodeSelector": {"a": "b"}}}},
                "status": {"desiredNumberScheduled": 3},
            },
            ["n", 3, 0, 0, 0, 0, "a=b", "5m", "", "", "app=web"],
        ),
        (
            "jobs",
            {
                "spec": {"completions": 2},
                "status": {
                    "succeeded": 2,
                    "startTime": "2026-01-01T00:56:00Z",
                    "completionTime": "2026-01-01T00:56:30Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["n", "Complete", "2/2", "30s", "5m", "", "", "<none>"],
        ),
        (
            "cronjobs",
            {"spec": {"schedule": "* * * * *", "suspend": True}, "status": {"active": [{}]}},
            ["n", "* * * * *", "<none>", "True", 1, "<none>", "5m", "", "", "<none>"],
        ),
        (
            "services",
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIP": "10.96.0.9",
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                }
            },
            ["n", "NodePort", "10.96.0.9", "<none>", "80:30080/TCP", "5m", "<none>"],
        ),
        (
            "services",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIP": "10.96.0.9",
                    "ports": [{"port": 80}],
                    "selector": {"a": "b"},
                }
            },
            ["n", "LoadBalancer", "10.96.0.9", "<pending>", "80/TCP", "5m", "a=b"],
        ),
        (
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.30.0"},
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                },
            },
            ["n", "Ready,SchedulingDisabled", "worker", "5m", "v1.30.0", "10.0.0.1", "<none>"] + ["<unknown>"] * 3,
        ),
        ("namespaces", {"status": {"phase": "Active"}}, ["n", "Active", "5m"]),
        ("configmaps", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["n", 2, "5m"]),
        ("secrets", {"type": "Opaque", "data": {"a": "1"}}, ["n", "Opaque", 1, "5m"]),
        ("serviceaccounts", {}, ["n", "5m"]),
        (
            "ingresses",
            {"spec": {"ingressClassName": "x", "rules": [{"host": "a"}, {}], "tls": [{}]}},
            ["n", "x", "a,*", "", "80, 443", "5m"],
        ),
        (
            "horizontalpodautoscalers",
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
                    ],
                },
                "status": {
                    "currentReplicas": 2,
                    "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 50}}}],
                },
            },
            ["n", "Deployment/web", "cpu: 50%/80%", "1", 5, 2, "5m"],
        ),
        ("poddisruptionbudgets", {"spec": {"minAvailable": 1}}, ["n", "1", "N/A", 0, "5m"]),
        (
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "storageClassName": "fast"},
                "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            },
            ["n", "Bound", "v", "1Gi", "RWO", "fast", "<unset>", "5m", "<unset>"],
        ),
        (
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "a", "name": "s"}],
            },
            ["n", "Role/r", "5m", "u", "", "a/s"],
        ),
        ("clusterroles", {}, ["n", "2026-01-01T00:55:00Z"]),
        ("leases", {"spec": {"holderIdentity": "me"}}, ["n", "me", "5m"]),
        ("networkpolicies", {"spec": {"podSelector": {}}}, ["n", "<none>", "5m"]),
        (
            "events",
            {
                "type": "Normal",
                "reason": "Made",
                "message": "it was made\n",
                "count": 3,
                "involvedObject": {"kind": "Pod", "name": "p"},
                "source": {"component": "maker"},
                "firstTimestamp": "2026-01-01T00:58:00Z",
                "lastTimestamp": "2026-01-01T00:59:00Z",
            },
            ["60s", "Normal", "Made", "pod/p", "", "maker", "it was made", "2m", 3, "n"],
        ),
        ("resourcequotas", {"status": {"hard": {"pods": "5"}, "used": {"pods": "1"}}}, ["n", "pods: 1/5", "", "5m"]),
        (
            "podtemplates",
            {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
            ["n", "c", "i", "a=b"],
        ),
        (
            "csidrivers",
            {"spec": {"attachRequired": False, "tokenRequests": [{"audience": "x"}]}},
            ["n", False, False, False, "x", False, "<none>", "5m"],
        ),
        ("csinodes", {"spec": {"drivers": [{}]}}, ["n", 1, "5m"]),
        (
            "volumeattachments",
            {"spec": {"attacher": "a", "nodeName": "w", "source": {"persistentVolumeName": "v"}}},
            ["n", "a", "v", "w", False, "5m"],
        ),
        ("runtimeclasses", {"handler": "runc"}, ["n", "runc", "5m"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_cells_of_each_kind(plural: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert cells(plural, obj) == expected


def running(**fields: Any) -> dict[str, Any]:
    return {"state": {"running": {}}, "ready": True, "restartCount": 0, **fields}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"status": {"phase": "Pending"}}, ["0/1", "Pending", "0"]),
        ({"status": {"phase": "Running", "containerStatuses": [running()]}}, ["1/1", "Running", "0"]),
        (
            {
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {
                            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                            "restartCount": 4,
                            "lastState": {"terminated": {"finishedAt": "2026-01-01T00:58:00Z"}},
                        }
                    ],
                }
            },
            ["0/1", "CrashLoopBackOff", "4 (2m ago)"],
        ),
        (
            {
                "metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:59:00Z"},
                "status": {"phase": "Running", "containerStatuses": [running()]},
            },
            ["1/1", "Terminating", "0"],
        ),
        (
            {
                "status": {
                    "phase": "Succeeded",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}],
                }
            },
            ["0/1", "Completed", "0"],
        ),
        (
            {"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}},
            ["0/1", "ExitCode:3", "0"],
        ),
        (
            {
                "spec": {"initContainers": [{}, {}], "containers": [{}]},
                "status": {"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]},
            },
            ["0/1", "Init:0/2", "0"],
        ),
        (
            {
                "spec": {"initContainers": [{}], "containers": [{}]},
                "status": {
                    "phase": "Pending",
                    "initContainerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
                },
            },
            ["0/1", "Init:Error", "0"],
        ),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, ["0/1", "Evicted", "0"]),
        (  # a container that restarts is not ready, whatever its status still says
            {"status": {"phase": "Running", "containerStatuses": [{"ready": True, "state": {"waiting": {}}}]}},
            ["0/1", "Running", "0"],
        ),
        (
            {
                "spec": {"initContainers": [{"name": "side", "restartPolicy": "Always"}], "containers": [{}]},
                "status": {
                    "phase": "Running",
                    "initContainerStatuses": [running(name="side", started=True, restartCount=2)],
                    "containerStatuses": [running(restartCount=1)],
                },
            },
            ["2/2", "Running", "3"],
        ),
        (  # restarts of finished init containers do not count
            {
                "spec": {"initContainers": [{"name": "init"}], "containers": [{}]},
                "status": {
                    "phase": "Running",
                    "initContainerStatuses": [
                        {"name": "init", "state": {"terminated": {"exitCode": 0}}, "restartCount": 5}
                    ],
                    "containerStatuses": [running()],
                },
            },
            ["1/1", "Running", "0"],
        ),
        (
            {
                "spec": {"containers": [{}, {}]},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {"state": {"terminated": {"reason": "Completed"}}},
                        {"state": {"terminated": {"reason": "Error", "exitCode": 1}}},
                    ],
                },
            },
            ["0/2", "Error", "0"],
        ),
        (
            {"spec": {"containers": [{}], "schedulingGates": [{"name": "g"}]}, "status": {"phase": "Pending"}},
            ["0/1", "SchedulingGated", "0"],
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_pod_cells(pod: dict[str, Any], expected: list[str]) -> None:
    pod.setdefault("spec", {"containers": [{}]})
    assert cells("pods", pod)[1:4] == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (12000, "3h20m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (691200, "8d"),
        (63072000, "2y"),
        (64000000, "2y10d"),
        (252288000, "8y"),
    ],
)
def test_durations(seconds: int, expected: str) -> None:
    assert human_duration(seconds) == expected


def custom(*columns: PrinterColumn) -> KindInfo:
    plain = INFOS["configmaps"]
    return KindInfo(plain.resource, "w", "WList", plain.strategy, plain.schema_source, columns=columns, is_custom=True)


def test_additional_printer_columns_of_a_crd() -> None:
    info = custom(
        PrinterColumn("Size", "integer", ".spec.size"),
        PrinterColumn("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Missing", "string", ".spec.nothing"),
        PrinterColumn("Since", "date", ".status.since", priority=1),
        PrinterColumn("On", "boolean", ".spec.on"),
        PrinterColumn("Wrong", "integer", ".spec.text"),
        PrinterColumn("Map", "string", ".spec.map"),
    )
    obj = {
        "metadata": {"name": "w"},
        "spec": {"size": 3, "on": True, "text": "x", "map": {"a": 1}},
        "status": {"since": "2026-01-01T00:59:30Z", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    table = to_table(info, [orjson.dumps(obj)], now=NOW)
    assert table["rows"][0]["cells"] == ["w", 3, "True", None, "30s", True, None, '{"a":1}']
    assert [column["name"] for column in table["columnDefinitions"]][:2] == ["Name", "Size"]


def test_crd_without_columns_shows_the_age() -> None:
    obj = {"metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert to_table(custom(), [orjson.dumps(obj)], now=NOW)["rows"][0]["cells"] == ["w", "60m"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        (".list[0].n", ["x"]),
        (".list[-1].n", ["y"]),
        (".list[9].n", []),
        (".list[*].n", ["x", "y"]),
        (".list[?(@.n=='y')].v", [2]),
        (".list[?(@.v!=2)].n", ["x"]),
        (r".dotted.a\.b", [5]),
        (".dotted['a.b']", [5]),
        (r".dotted['a\.b']", [5]),
        (".a.b.c", []),
        (".a[", []),
    ],
)
def test_json_paths(path: str, expected: list[Any]) -> None:
    obj = {"a": {"b": 1}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "dotted": {"a.b": 5}}
    assert jsonpath.find(obj, path) == expected


def test_include_object_selects_the_object_in_a_row() -> None:
    value = orjson.dumps({"metadata": {"name": "n"}, "data": {"a": "b"}})
    info = INFOS["configmaps"]
    partial = orjson.loads(orjson.dumps(to_table(info, [value], now=NOW)))["rows"][0]["object"]
    assert partial == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "n"}}
    whole = orjson.loads(orjson.dumps(to_table(info, [value], now=NOW, include_object="Object")))["rows"][0]["object"]
    assert whole == orjson.loads(value)
    assert to_table(info, [value], now=NOW, include_object="None")["rows"][0]["object"] is None


def test_table_has_the_metadata_of_its_list() -> None:
    table = to_table(
        INFOS["pods"], [], now=NOW, resource_version="7", continue_token="t", remaining=3, has_columns=False
    )
    assert table["metadata"] == {"resourceVersion": "7", "continue": "t", "remainingItemCount": 3}
    assert table["columnDefinitions"] == []
