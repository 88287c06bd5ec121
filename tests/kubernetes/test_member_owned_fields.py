"""A real API server and ours accept what is applied over fields that a member has changed, and keep its values."""

from typing import Any

import pytest
from tests.support.rest import Api, Object

from federation.api import names
from federation.apimachinery.dotpaths import value_at
from federation.planning.rendering.memberowned import QUEUE_LABEL
from federation.planning.rendering.retention import retain_for_apply

_POD: Object = {"containers": [{"name": "main", "image": "job:1"}], "restartPolicy": "Never"}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_INJECTED = {"cert-manager.io/inject-ca-from": "shop/ca"}
_BLANK, _BUNDLE = "Cg==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"


def _webhook(bundle: str) -> Object:
    return {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"caBundle": bundle, "service": {"name": "x", "namespace": "x"}},
        "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}],
    }  # fmt: skip


def _volume(size: str) -> Object:
    return {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}


CASES: list[Any] = [
    pytest.param(
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"none": "x"}}]}},
        {"rules": _RULES},
        "rules",
        _RULES,
        id="aggregated-rules",
    ),
    pytest.param(
        ("batch/v1", "Job", "jobs"),
        {"spec": {"template": {"spec": _POD}}},
        {"spec": {"suspend": True}},
        "spec.suspend",
        True,
        id="suspended-by-a-queue",
    ),
    pytest.param(
        ("batch/v1", "Job", "jobs"),
        {"metadata": {"labels": {QUEUE_LABEL: "x"}}, "spec": {"suspend": True, "template": {"spec": _POD}}},
        {"spec": {"suspend": False}},
        "spec.suspend",
        False,
        id="resumed-by-a-queue",
    ),
    pytest.param(
        ("v1", "PersistentVolume", "persistentvolumes"),
        {"spec": _volume("1Gi")},
        {"spec": {"capacity": {"storage": "2Gi"}}},
        "spec.capacity.storage",
        "2Gi",
        id="grown-volume",
    ),
    pytest.param(
        ("v1", "Pod", "pods"),
        {"spec": {**_POD, "schedulingGates": [{"name": "a.example.com/x"}, {"name": "b.example.com/x"}]}},
        {"spec": {"schedulingGates": [{"name": "b.example.com/x"}]}},
        "spec.schedulingGates",
        [{"name": "b.example.com/x"}],
        id="gate-removed",
    ),
    pytest.param(
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        {"metadata": {"annotations": _INJECTED}, "webhooks": [_webhook(_BLANK)]},
        {"webhooks": [_webhook(_BUNDLE)]},
        "webhooks",
        _BUNDLE,
        id="injected-bundle",
    ),
]


@pytest.mark.parametrize(("kind", "desired", "changed", "path", "expected"), CASES)
def test_the_members_value_stays_when_something_else_is_applied(
    servers: tuple[Api, Api],
    request: pytest.FixtureRequest,
    kind: tuple[str, str, str],
    desired: Object,
    changed: Object,
    path: str,
    expected: Any,
) -> None:
    name = f"owned-{request.node.callspec.id}"
    for api in servers:
        wanted = _whole(kind, name, desired)
        api.apply(kind[2], wanted, names.FIELD_MANAGER)
        live = {**api.patch(kind[2], name, changed), "apiVersion": kind[0], "kind": kind[1]}
        wanted["metadata"]["labels"] = {**wanted["metadata"].get("labels", {}), "team": "a"}
        after = api.apply(kind[2], retain_for_apply(wanted, live), names.FIELD_MANAGER, force=True)
        found = value_at(after, path)
        assert (found[0]["clientConfig"]["caBundle"] if path == "webhooks" else found) == expected
        assert after["metadata"]["labels"]["team"] == "a"


def test_tolerations_that_a_pod_got_in_the_member_stay(servers: tuple[Api, Api]) -> None:
    kind = ("v1", "Pod", "pods")
    wanted = _whole(kind, "owned-tolerations", {"spec": {**_POD, "tolerations": [{"key": "a", "operator": "Exists"}]}})
    for api in servers:
        live = {**api.apply("pods", wanted, names.FIELD_MANAGER), "apiVersion": "v1", "kind": "Pod"}
        added = [*live["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
        live = {
            **api.patch("pods", "owned-tolerations", {"spec": {"tolerations": added}}),
            "apiVersion": "v1",
            "kind": "Pod",
        }
        labelled = {**wanted, "metadata": {**wanted["metadata"], "labels": {"team": "a"}}}
        after = api.apply("pods", retain_for_apply(labelled, live), names.FIELD_MANAGER, force=True)
        assert {item["key"] for item in after["spec"]["tolerations"]} == {item["key"] for item in added}
        assert after["metadata"]["labels"] == {"team": "a"}


def test_a_job_is_resumed_when_nothing_is_said_about_suspend_any_more(servers: tuple[Api, Api]) -> None:
    kind = ("batch/v1", "Job", "jobs")
    for api in servers:
        suspended = _whole(kind, "owned-resumed", {"spec": {"suspend": True, "template": {"spec": _POD}}})
        assert api.apply("jobs", suspended, names.FIELD_MANAGER)["spec"]["suspend"] is True
        resumed = _whole(kind, "owned-resumed", {"spec": {"template": {"spec": _POD}}})
        assert api.apply("jobs", resumed, names.FIELD_MANAGER, force=True)["spec"]["suspend"] is False


def test_a_service_keeps_its_families_when_the_host_does_not_send_its_own_any_more(servers: tuple[Api, Api]) -> None:
    kind = ("v1", "Service", "services")
    families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    spec = {"type": "ClusterIP", "selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP"}]}
    for api in servers:
        before = api.apply("services", _whole(kind, "families", {"spec": {**spec, **families}}), names.FIELD_MANAGER)
        changed = _whole(kind, "families", {"spec": {**spec, "selector": {"app": "other"}}})
        after = api.apply("services", changed, names.FIELD_MANAGER, force=True)
        assert after["spec"]["selector"] == {"app": "other"}
        for field in (*families, "clusterIP", "clusterIPs"):
            assert after["spec"][field] == before["spec"][field]


def _whole(kind: tuple[str, str, str], name: str, desired: Object) -> Object:
    metadata = {**desired.get("metadata", {}), "name": name}
    return {**desired, "apiVersion": kind[0], "kind": kind[1], "metadata": metadata}
