"""An upgrade in place: what the previous version kept, swept, suspended and held is as it was, and can be released.

`fedctl up` of the previous version makes the objects; this version starts on its folder. The members keep running the
objects that they had, as far as nobody wants otherwise: nothing is deleted, moved or written again there.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from federation.api import names
from tests.e2e.test_adjacent_versions import previous
from tests.support.federation import Federation, eventually, fedctl, start_federation
from tests.support.manifests import a_deployment

__all__ = ("previous",)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("control planes of two versions"),
    pytest.mark.xdist_group("adjacentversions"),
]
CORE = "core.kubeadmiral.io/v1alpha1"
SHOP = "shop"
MEMBERS = ("member-1", "member-2", "member-3")


def _ours(kind: str, name: str, spec: Mapping[str, Any], namespace: str = SHOP, **metadata: Any) -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": CORE, "kind": kind, "metadata": {"name": name, **where, **metadata}, "spec": dict(spec)}


def _policy(name: str, kinds: Mapping[str, str], clusters: list[str], **spec: Any) -> dict[str, Any]:
    selectors = [
        {"apiVersion": version, "kind": kind, "labelSelector": {"matchLabels": {"policy": name}}}
        for kind, version in kinds.items()
    ]
    placement = [{"cluster": cluster} for cluster in clusters]
    return _ours("PropagationPolicy", name, {"placement": placement, "resourceSelectors": selectors, **spec})


def _config(name: str, policy: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SHOP, "labels": {"policy": policy}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"step": "1"}}


def _web(name: str, policy: str, replicas: int = 2, **annotations: str) -> dict[str, Any]:
    web = a_deployment(name, replicas=replicas, policy=policy)
    web["metadata"] |= {"namespace": SHOP, "annotations": annotations}
    return web


def _database() -> dict[str, Any]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    template = a_deployment("db")["spec"]["template"]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": SHOP, "labels": {"policy": "data"}},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    }


def _definition(*served: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == served[-1], "schema": schema} for name in served]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": versions,
        },
    }


def _objects() -> dict[str, Any]:
    deployment, config = {"Deployment": "apps/v1"}, {"ConfigMap": "v1"}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}},
        _definition("v1alpha1", "v1"),
        _policy("kept", deployment, ["member-1", "member-4"], schedulingMode="Duplicate"),
        _policy("left", config, ["member-1", "member-2"], schedulingMode="Duplicate"),
        _policy("suspended", deployment, ["member-1", "member-2"], schedulingMode="Duplicate"),
        _policy("frozen", config, ["member-3"], schedulingMode="Duplicate"),
        _policy("many", config, ["member-1"], schedulingMode="Duplicate"),
        _policy("data", {"StatefulSet": "apps/v1"}, ["member-1"], schedulingMode="Divide"),
        _policy("waiting", deployment, ["member-1"], schedulingMode="Divide"),
        _policy("stopped", deployment, ["member-1", "member-2"], schedulingMode="Duplicate"),
        _web("kept", "kept"),
        _web("orphan", "kept", **{names.ORPHAN: "all"}),
        _web("suspended", "suspended"),
        _web("waiting", "waiting"),
        _web("stopped", "stopped"),
        _config("frozen", "frozen"),
        _config("left", "left"),
        *(_config(f"many-{number:02}", "many") for number in range(_MANY)),
        _database(),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


_MANY = 12
"""More objects than the guard lets move without an approval."""
_WIDGETS = {
    "apiVersion": CORE,
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "widgets"},
    "spec": {
        "schedulingMode": "Duplicate",
        "placement": [{"cluster": "member-1"}],
        "resourceSelectors": [
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
            {"apiVersion": "example.com/v1alpha1", "kind": "Widget"},
        ],
    },
}
_WIDGET = {
    "apiVersion": "example.com/v1alpha1",
    "kind": "Widget",
    "metadata": {"name": "one", "namespace": SHOP},
    "spec": {"size": 1},
}
_TERMINATING: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            **_WIDGETS,
            "metadata": {"name": "volumes"},
            "spec": {
                "schedulingMode": "Duplicate",
                "placement": [{"cluster": "member-1"}],
                "resourceSelectors": [
                    {"apiVersion": "v1", "kind": "PersistentVolume"},
                    {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
                ],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                "storageClassName": "manual",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/data"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "disk", "namespace": SHOP},
            "spec": {
                "storageClassName": "manual",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ],
}
_SUSPENSION = _ours(
    "DeliverySuspension",
    "copying",
    {
        "clusters": ["member-2"],
        "objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "suspended"}],
        "owner": "storage@example.com",
        "reason": "volumes are copied",
    },
)
_CLUSTER_SUSPENSION = _ours(
    "ClusterDeliverySuspension",
    "repair",
    {
        "namespaces": [SHOP],
        "objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "stopped"}],
        "owner": "network@example.com",
        "reason": "a switch is replaced",
    },
    namespace="",
)
_FREEZE = _ours(
    "ChangeFreeze",
    "quiet",
    {
        "clusterSelector": {"matchLabels": {"region": "shanghai"}},
        "namespaces": [SHOP],
        "holds": ["Updates"],
        "reason": "no changes",
        "windows": [{"start": "2020-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}],
    },
    namespace="",
)


def _status(fed: Federation, name: str) -> dict[str, str]:
    """Return the status by cluster of an object's federated object."""
    found = fed.api(SHOP).find("federatedobjects", name) or {}
    return {each["cluster"]: each["status"] for each in (found.get("status") or {}).get("clusters") or ()}


def _until_status(fed: Federation, name: str, **expected: str) -> None:
    wanted = {cluster.replace("_", "-"): status for cluster, status in expected.items()}
    eventually(lambda: _status(fed, name), lambda seen: wanted.items() <= seen.items(), what=f"{name}: {wanted}")


def _holds(fed: Federation) -> dict[str, int]:
    found = fed.api("").list("placementholds")["items"]
    return {each["spec"]["cause"]: each["spec"]["count"] for each in found if not each["spec"].get("approval")}


def _copies(fed: Federation) -> dict[str, Any]:
    """Return what users see of each object in each member, without the reports of the member's own controllers."""
    found: dict[str, Any] = {}
    for member in ALL:
        api = fed.api(SHOP, member=member)
        for kind in ("deployments", "statefulsets", "configmaps", "persistentvolumeclaims", "pods"):
            for each in api.list(kind)["items"]:
                meta = each["metadata"]
                marks = (meta["uid"], meta.get("generation"), meta.get("deletionTimestamp"), meta.get("annotations"))
                content = each.get("data") or (each["spec"] if kind != "pods" else None)
                found[f"{member} {kind}/{meta['name']}"] = (*marks, content)
    return found


def _fill(old: Federation, environment: Mapping[str, str]) -> None:
    """Make objects that are kept, swept, suspended and held by the version that runs."""
    kubectl, api = old.kubectl, old.api(SHOP)

    def run(*arguments: str) -> str:
        return fedctl(*arguments, KUBECONFIG=str(kubectl.kubeconfig), **environment).stdout

    kubectl("apply", "-f", "-", stdin=json.dumps(_objects()))
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s")
    kubectl("apply", "-f", "-", stdin=json.dumps(_WIDGETS))
    kubectl("apply", "-f", "-", stdin=json.dumps(_WIDGET))
    eventually(lambda: api.exists("federatedobjects", "one-widgets.example.com"), bool, what="a federated widget")
    run("join", "--update-credentials", "member-1", "--kubeconfig", str(old.member("member-1").kubeconfig))
    _until_status(old, "one-widgets.example.com", member_1="OK")
    for name in ("kept", "orphan"):
        _until_status(old, f"{name}-deployments.apps", member_1="OK", member_4="OK")
    for name in ("kept", "suspended", "waiting", "stopped"):
        kubectl("rollout", "status", f"deploy/{name}", "-n", SHOP, "--timeout=90s")
    kubectl("rollout", "status", "sts/db", "-n", SHOP, "--timeout=90s")
    _until_status(old, "left-configmaps", member_1="OK", member_2="OK")
    _until_status(old, f"many-{_MANY - 1:02}-configmaps", member_1="OK")

    kubectl.apply(_SUSPENSION, _CLUSTER_SUSPENSION, _FREEZE)
    suspension = {"scheduling": True, "reason": "costs are checked"}
    api.patch("propagationpolicies", "waiting", {"spec": {"suspension": suspension}})
    kubectl("set", "image", "deploy/suspended", "web=nginx:1.28", "-n", SHOP)
    api.patch("configmaps", "frozen", {"data": {"step": "2"}})
    # A suspended policy does not move, and a suspended workload does not change.
    kubectl("set", "image", "deploy/stopped", "web=nginx:1.28", "-n", SHOP)
    for policy, cluster in (
        ("many", "member-3"),
        ("data", "member-2"),
        ("waiting", "member-3"),
    ):
        api.patch("propagationpolicies", policy, {"spec": {"placement": [{"cluster": cluster}]}})
    kubectl("delete", "deploy/orphan", "-n", SHOP, "--timeout=60s")
    _until_status(old, "suspended-deployments.apps", member_1="OK", member_2="DeliverySuspended")
    _until_status(old, "stopped-deployments.apps", **_STOPPED)
    _until_status(old, "frozen-configmaps", member_3="WaitingForUpdate")
    eventually(lambda: _holds(old), lambda seen: seen == HELD, what="two holds")
    run("unjoin", "member-4")


def _leave_terminating(old: Federation) -> None:
    """Delete a volume before its claim: the version of before keeps it for ever."""
    old.kubectl("apply", "-f", "-", stdin=json.dumps(_TERMINATING))
    phase = ("get", "pv", "disk", "-o", "jsonpath={.status.phase}")
    eventually(lambda: old.kubectl(*phase), lambda seen: seen == "Bound", what="a bound volume on the host")
    old.kubectl("delete", "pv/disk", "--wait=false")
    old.kubectl("delete", "pvc/disk", "-n", SHOP, "--timeout=60s")


def _leave_behind(old: Federation) -> None:
    """Delete an object while one of its members does not answer: a record finishes that later."""
    fedctl("sim", "stop", "member-2", "--dir", str(old.directory))
    old.kubectl("delete", "configmap/left", "-n", SHOP, "--timeout=90s")
    records = eventually(lambda: old.kubectl.json("get", "leftovers")["items"], bool, what="a record")
    assert [(each["spec"]["cluster"], each["spec"]["name"]) for each in records] == [("member-2", "left")]


ALL = (*MEMBERS, "member-4")
HELD = {f"PropagationPolicy {SHOP}/data": 1, f"PropagationPolicy {SHOP}/many": _MANY}
_STEADY_S = 30.0
_STOPPED = {"member_1": "DeliverySuspended", "member_2": "DeliverySuspended"}


def _assert_steady(look: Callable[[], Any], expected: Any) -> None:
    """Look for some time: a sweep and the first reconciles of every controller come within it."""
    end_s = time.monotonic() + _STEADY_S
    while time.monotonic() < end_s:
        assert look() == expected
        time.sleep(1)


def test_an_upgrade_changes_nothing_in_members_and_releases_what_was_held(
    tmp_path: Path, previous: dict[str, str]
) -> None:
    folder = tmp_path / "fleet"
    with closing(start_federation(folder, members=4, **previous)) as old:
        _fill(old, previous)
        _leave_terminating(old)
        before = {key: copy for key, copy in _copies(old).items() if not key.endswith("/left")}
        _leave_behind(old)
        assert old.stop() == 0
    with closing(start_federation(folder, members=4)) as new:
        kubectl = new.kubectl
        eventually(lambda: new.in_members("configmaps", "left", SHOP), lambda seen: not seen, what="the record's end")
        _assert_steady(lambda: _copies(new), before)
        assert _holds(new) == HELD
        eventually(lambda: new.api("").exists("persistentvolumes", "disk"), lambda seen: not seen, what="its end")
        _until_status(new, "suspended-deployments.apps", member_1="OK", member_2="DeliverySuspended")
        _until_status(new, "stopped-deployments.apps", **_STOPPED)
        _until_status(new, "frozen-configmaps", member_3="WaitingForUpdate")
        _until_status(new, "one-widgets.example.com", member_1="OK")

        # Everything can be released.
        for hold in new.api("").list("placementholds")["items"]:
            name = hold["metadata"]["name"]
            fedctl("approve", name, "--reason", "planned", KUBECONFIG=str(kubectl.kubeconfig))
        kubectl("delete", "deliverysuspension/copying", "-n", SHOP)
        kubectl("delete", "changefreeze/quiet", "clusterdeliverysuspension/repair")
        new.api(SHOP).patch("propagationpolicies", "waiting", {"spec": {"suspension": None}})
        _until_status(new, "suspended-deployments.apps", member_1="OK", member_2="OK")
        _until_status(new, "frozen-configmaps", member_3="OK")
        last = f"many-{_MANY - 1:02}"
        eventually(lambda: sorted(new.in_members("configmaps", last, SHOP)), lambda seen: seen == ["member-3"])
        eventually(lambda: sorted(new.in_members("statefulsets", "db", SHOP)), lambda seen: seen == ["member-2"])
        eventually(lambda: sorted(new.in_members("deployments", "waiting", SHOP)), lambda seen: seen == ["member-3"])
        _until_status(new, "stopped-deployments.apps", member_1="OK", member_2="OK")
        kubectl("patch", "widget/one", "-n", SHOP, "--type=merge", "-p", '{"spec":{"size":2}}')
        eventually(
            lambda: new.member("member-1").json("get", "widget/one", "-n", SHOP)["spec"]["size"],
            lambda seen: seen == 2,
            what="the widget's new size",
        )
        kubectl("delete", "namespace", SHOP, "--timeout=120s")
