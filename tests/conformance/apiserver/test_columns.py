"""Conformance area: the columns that `kubectl get -o wide` shows of the main kinds, and their cells."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_pod, a_service, a_spec
from tests.support.rest import TABLE, Api, Object, refused

WIDE = ["Containers", "Images", "Selector"]
SELECTED = {"name": "main", "image": "nginx:1.25"}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
SUBJECTS = [
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
]
PODS = {"podSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}}
TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod()["spec"]}


def table_of(api: Api, plural: str, name: str, namespace: str | None = None) -> tuple[list[Object], Any]:
    """Return the columns, and the cells of one object."""
    table = api.list(plural, namespace=namespace, accept=TABLE)
    rows = {row["object"]["metadata"]["name"]: row["cells"] for row in table["rows"] or ()}
    return table["columnDefinitions"], rows.get(name)


@pytest.mark.parametrize(
    ("plural", "obj", "columns", "cells"),
    [
        (
            "replicasets",
            {"spec": a_spec("replicasets")},
            ["Name", "Desired", "Current", "Ready", "Age", *WIDE],
            ["o", 0, 0, 0, ..., "main", "nginx:1.25", "a=b"],
        ),
        (
            "statefulsets",
            {"spec": a_spec("statefulsets")},
            ["Name", "Ready", "Age", "Containers", "Images"],
            ["o", "0/0", ..., "main", "nginx:1.25"],
        ),
        (
            "daemonsets",
            {"spec": a_spec("daemonsets")},
            ["Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age", *WIDE],
            ["o", 0, 0, 0, 0, 0, "no=node", ..., "main", "nginx:1.25", "a=b"],
        ),
        (
            "jobs",
            {"spec": a_spec("jobs")},
            ["Name", "Status", "Completions", "Duration", "Age", *WIDE],
            ["o", ..., "0/1", ""],
        ),
        (
            "cronjobs",
            {"spec": a_spec("cronjobs")},
            ["Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", *WIDE],
            ["o", "0 0 * * *", "<none>", "True", 0, "<none>", ..., "main", "nginx:1.25", "<none>"],
        ),
        (
            "services",
            {"spec": {"type": "ExternalName", "externalName": "x.y"}},
            ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"],
            ["o", "ExternalName", "<none>", "x.y", "<none>", ..., "<none>"],
        ),
        (
            "ingresses",
            {"spec": {**a_spec("ingresses"), "ingressClassName": "c", "tls": [{"hosts": ["a"]}], "rules": None}},
            ["Name", "Class", "Hosts", "Address", "Ports", "Age"],
            ["o", "c", "*", "", "80, 443"],
        ),
        (
            "autoscaling/v2/horizontalpodautoscalers",
            {"spec": a_spec("autoscaling/v2/horizontalpodautoscalers")},
            ["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"],
            ["o", "Deployment/no", "cpu: <unknown>/80%", "1", 2, 0],
        ),
        (
            "poddisruptionbudgets",
            {"spec": a_spec("poddisruptionbudgets")},
            ["Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"],
            ["o", "1", "N/A", 0],
        ),
        (
            "persistentvolumeclaims",
            {"spec": a_spec("persistentvolumeclaims")},
            [
                *["Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass"],
                *["Age", "VolumeMode"],
            ],
            ["o", "Pending", "", "", "", "none", "<unset>", ..., "Filesystem"],
        ),
        ("serviceaccounts", {}, ["Name", "Age"], ["o"]),
        ("leases", {"spec": {"holderIdentity": "me"}}, ["Name", "Holder", "Age"], ["o", "me"]),
        ("networkpolicies", {"spec": PODS}, ["Name", "Pod-Selector", "Age"], ["o", "a=b,c"]),
        ("roles", {"rules": []}, ["Name", "Created At"], ["o"]),
        (
            "rolebindings",
            {"roleRef": ROLE, "subjects": SUBJECTS},
            ["Name", "Role", "Age", "Users", "Groups", "ServiceAccounts"],
            ["o", "Role/r", ..., "u", "", "n/s"],
        ),
        ("v1/limitranges", {"spec": {"limits": []}}, ["Name", "Created At"], ["o"]),
        (
            "v1/podtemplates",
            {"template": TEMPLATE},
            ["Name", "Containers", "Images", "Pod Labels"],
            ["o", "main", "nginx:1.25", "a=b"],
        ),
        ("controllerrevisions", {"revision": 3, "data": {"a": 1}}, ["Name", "Controller", "Revision", "Age"], ["o"]),
        (
            "discovery.k8s.io/v1/endpointslices",
            {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80, "name": "x"}]},
            ["Name", "AddressType", "Ports", "Endpoints", "Age"],
            ["o", "IPv4", "80", "1.2.3.4"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_kind_is_printed(api: Api, plural: str, obj: Object, columns: list[str], cells: list[Any]) -> None:
    api.create(plural, {**obj, "metadata": {"name": "o"}})
    found, shown = table_of(api, plural, "o")
    assert [column["name"] for column in found] == columns
    assert [cell if wanted is not ... else ... for cell, wanted in zip(shown, cells, strict=False)] == cells
    assert found[0]["format"] == "name"


@pytest.mark.parametrize(
    ("plural", "types"),
    [
        ("deployments", {"Up-to-date": "string", "Available": "string"}),
        ("replicasets", {"Desired": "integer", "Current": "integer", "Ready": "integer"}),
        ("cronjobs", {"Suspend": "boolean", "Active": "integer"}),
        ("autoscaling/v2/horizontalpodautoscalers", {"MaxPods": "string", "Replicas": "string"}),
        ("secrets", {"Data": "string"}),
        ("roles", {"Created At": "date"}),
        ("events", {"Count": "string"}),
    ],
)
def test_columns_have_kubernetes_types(api: Api, plural: str, types: dict[str, str]) -> None:
    found = {column["name"]: column["type"] for column in table_of(api, plural, "")[0]}
    assert {name: found[name] for name in types} == types


def test_events_show_their_object_first_and_their_name_only_wide(api: Api) -> None:
    regarding = {"kind": "Pod", "name": "p", "namespace": api.namespace, "fieldPath": "spec.containers{main}"}
    times = {"firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "count": 4}
    source = {"component": "kubelet", "host": "n"}
    event = {
        "involvedObject": regarding,
        "reason": "R",
        "type": "Warning",
        "message": " hi ",
        "source": source,
        **times,
    }
    api.create("events", {"metadata": {"name": "e"}, **event})
    columns, cells = table_of(api, "events", "e")
    shown = {column["name"]: cell for column, cell in zip(columns, cells, strict=True)}
    assert shown.pop("Last Seen") == shown.pop("First Seen")
    assert shown == {
        "Type": "Warning",
        "Reason": "R",
        "Object": "pod/p",
        "Subobject": "spec.containers{main}",
        "Source": "kubelet, n",
        "Message": "hi",
        "Count": 4,
        "Name": "e",
    }
    wide = {column["name"] for column in columns if column["priority"] == 1}
    assert wide == {"Subobject", "Source", "First Seen", "Count", "Name"}


def test_only_running_containers_are_ready(api: Api) -> None:
    side = {"name": "side", "image": "i", "restartPolicy": "Always"}
    api.create("pods", a_pod(initContainers=[side], readinessGates=[{"conditionType": "a.b/c"}]))
    running: Object = {"ready": True, "restartCount": 2, "image": "i", "imageID": "i", "state": {"running": {}}}
    crashed = {"terminated": {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {
        "phase": "Running",
        "podIPs": [{"ip": "10.1.1.1"}],
        "podIP": "10.1.1.1",
        "initContainerStatuses": [{**running, "name": "side", "started": True}],
        "containerStatuses": [{**running, "name": "main", "state": waiting, "lastState": crashed}],
        "conditions": [{"type": "a.b/c", "status": "True"}],
    }
    api.patch("pods", "p", {"status": status}, "status")
    _, cells = table_of(api, "pods", "p")
    assert (cells[1:3], cells[5:]) == (["1/2", "CrashLoopBackOff"], ["10.1.1.1", "<none>", "<none>", "1/1"])
    assert cells[3].startswith("4 (")


@pytest.mark.parametrize(
    ("plural", "columns"),
    [
        ("nodes", "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version Container-Runtime"),
        ("namespaces", "Name Status Age"),
        ("storage.k8s.io/v1/csidrivers", "Name AttachRequired PodInfoOnMount StorageCapacity TokenRequests"),
        ("storage.k8s.io/v1/csinodes", "Name Drivers Age"),
        ("storage.k8s.io/v1/storageclasses", "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion"),
        ("storage.k8s.io/v1/volumeattachments", "Name Attacher PV Node Attached Age"),
        ("node.k8s.io/v1/runtimeclasses", "Name Handler Age"),
        ("scheduling.k8s.io/v1/priorityclasses", "Name Value Global-Default Age PreemptionPolicy"),
        ("networking.k8s.io/v1/ingressclasses", "Name Controller Parameters Age"),
        ("customresourcedefinitions", "Name"),
    ],
)
def test_kinds_of_the_cluster_are_printed(api: Api, plural: str, columns: str) -> None:
    found = [column["name"] for column in table_of(api, plural, "", "")[0]]
    assert found[: len(columns.split())] == columns.split()


def test_includes_other_than_the_three_are_refused(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(400, "BadRequest", "includeObject: Invalid value: \"Half\": must be 'Metadata', 'Object', 'None'"):
        api.get("configmaps", "cm", accept=TABLE, includeObject="Half")
    assert api.get("configmaps", "cm", accept=TABLE, includeObject="None")["rows"][0]["object"] is None


def test_ports_and_addresses_of_services_are_listed(api: Api) -> None:
    ports = [{"port": 80, "name": "a"}, {"port": 90, "name": "b", "protocol": "UDP"}]
    api.create("services", a_service("headless", clusterIP="None", ports=ports))
    api.create("services", a_service("outside", externalIPs=["1.2.3.4", "1.2.3.5"]))
    assert table_of(api, "services", "headless")[1][1:5] == ["ClusterIP", "None", "<none>", "80/TCP,90/UDP"]
    assert table_of(api, "services", "outside")[1][3:5] == ["1.2.3.4,1.2.3.5", "80/TCP"]
