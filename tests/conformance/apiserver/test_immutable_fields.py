"""Immutable fields of each kind, and the messages that refuse their change."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import JOB, a_deployment, a_pod, a_service, a_spec
from tests.support.rest import Api, Object, refused

IMMUTABLE = "field is immutable"
SET = "field is immutable when `immutable` is set"
ONLY_SOME = "updates to statefulset spec for fields other than 'replicas'"
POD = "pod updates may not change fields other than `spec.containers[*].image`"
RELABELLED: Object = {"selector": {"matchLabels": {"a": "c"}}, "template": {"metadata": {"labels": {"a": "c"}}}}


def spec_of(plural: str, **more: Any) -> Object:
    return {"spec": {**a_spec(plural), **more}}


@pytest.mark.parametrize(
    ("plural", "obj", "patch", "field", "text"),
    [
        ("deployments", a_deployment("x"), {"spec": {"selector": {"matchLabels": {"app": "y"}}}}, "spec.selector", ""),
        ("replicasets", spec_of("replicasets"), {"spec": RELABELLED}, "spec.selector", IMMUTABLE),
        ("daemonsets", spec_of("daemonsets"), {"spec": RELABELLED}, "spec.selector", IMMUTABLE),
        ("statefulsets", spec_of("statefulsets"), {"spec": {"serviceName": "y"}}, "spec", ONLY_SOME),
        ("statefulsets", spec_of("statefulsets"), {"spec": {"podManagementPolicy": "Parallel"}}, "spec", ONLY_SOME),
        ("jobs", spec_of("jobs"), {"spec": {"completions": 5}}, "spec.completions", IMMUTABLE),
        (
            "jobs",
            spec_of("jobs"),
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}},
            "spec.template.spec",
            IMMUTABLE,
        ),
        (
            "jobs",
            spec_of("jobs", completionMode="Indexed", completions=3, parallelism=3),
            {"spec": {"completions": 5}},
            "spec.completions",
            "can only be modified in tandem with spec.parallelism",
        ),
        (
            "services",
            a_service(),
            {"spec": {"clusterIP": "10.96.7.7"}},
            "spec.clusterIPs[0]",
            "may not change once set",
        ),
        (
            "services",
            a_service(clusterIP="None"),
            {"spec": {"clusterIP": "10.96.7.7"}},
            "spec.clusterIPs[0]",
            "may not",
        ),
        (
            "services",
            a_service(type="LoadBalancer", loadBalancerClass="a.b/c"),
            {"spec": {"loadBalancerClass": "a.b/d"}},
            "spec.loadBalancerClass",
            "may not change once set",
        ),
        ("secrets", {"immutable": True, "data": {"a": "YQ=="}}, {"data": {"a": "Yg=="}}, "data", SET),
        ("secrets", {"immutable": True}, {"immutable": False}, "immutable", SET),
        ("secrets", {"data": {"a": "YQ=="}}, {"type": "other"}, "type", IMMUTABLE),
        ("configmaps", {"immutable": True}, {"binaryData": {"b": "Yg=="}}, "binaryData", SET),
        (
            "persistentvolumeclaims",
            spec_of("persistentvolumeclaims"),
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            "spec",
            "spec is immutable after creation except resources.requests",
        ),
        (
            "persistentvolumeclaims",
            spec_of("persistentvolumeclaims"),
            {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
            "spec",
            "for bound claims",
        ),
        (
            "rolebindings",
            {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
            {"roleRef": {"name": "edit"}},
            "roleRef",
            "cannot change roleRef",
        ),
        ("pods", a_pod(), {"spec": {"containers": [{"name": "main", "image": "i", "tty": True}]}}, "spec", POD),
        ("pods", a_pod(), {"spec": {"nodeName": "n"}}, "spec", POD),
        ("pods", a_pod(), {"spec": {"terminationGracePeriodSeconds": 1}}, "spec", POD),
        (
            "pods",
            a_pod(activeDeadlineSeconds=5),
            {"spec": {"activeDeadlineSeconds": 9}},
            "spec.activeDeadlineSeconds",
            "must be less than or equal to previous value",
        ),
        (
            "pods",
            a_pod(schedulingGates=[{"name": "a.b/c"}]),
            {"spec": {"schedulingGates": [{"name": "a.b/d"}]}},
            "spec.schedulingGates[0].name",
            "only deletion is allowed, but found new scheduling gate 'a.b/d'",
        ),
        (
            "discovery.k8s.io/v1/endpointslices",
            {"addressType": "IPv4", "endpoints": []},
            {"addressType": "IPv6"},
            "addressType",
            IMMUTABLE,
        ),
        ("controllerrevisions", {"revision": 1, "data": {"a": 1}}, {"data": {"a": 2}}, "data", IMMUTABLE),
    ],
)
def test_it_is_refused(api: Api, plural: str, obj: Object, patch: Object, field: str, text: str) -> None:
    api.create(plural, {**obj, "metadata": {"name": "fixed", "labels": {"app": "x"}}})
    with refused(422, "Invalid", text) as caught:
        api.patch(plural, "fixed", patch)
    assert field in caught.value.fields


@pytest.mark.parametrize(
    ("plural", "obj", "patch", "field", "text"),
    [
        (
            "storage.k8s.io/v1/storageclasses",
            {"provisioner": "a.b/c", "parameters": {"a": "b"}},
            {"parameters": {"a": "c"}},
            "parameters",
            IMMUTABLE,
        ),
        (
            "networking.k8s.io/v1/ingressclasses",
            {"spec": {"controller": "a.b/c"}},
            {"spec": {"controller": "a.b/d"}},
            "spec.controller",
            IMMUTABLE,
        ),
        (  # the path is misspelt in Kubernetes
            "storage.k8s.io/v1/csidrivers",
            {"spec": {}},
            {"spec": {"attachRequired": False}},
            "spec.attachedRequired",
            IMMUTABLE,
        ),
        ("node.k8s.io/v1/runtimeclasses", {"handler": "runc"}, {"handler": "kata"}, "handler", IMMUTABLE),
        (
            "scheduling.k8s.io/v1/priorityclasses",
            {"value": 5},
            {"value": 6},
            "value",
            "may not be changed in an update.",
        ),
        (
            "v1/persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "none",
                    "hostPath": {"path": "/x"},
                }
            },
            {"spec": {"hostPath": {"path": "/y"}}},
            "spec.persistentvolumesource",
            "is immutable after creation",
        ),
        (
            "v1/nodes",
            {"spec": {"providerID": "a", "unschedulable": True}},
            {"spec": {"providerID": "b"}},
            "spec.providerID",
            'node updates may not change providerID except from "" to valid',
        ),
    ],
)
def test_it_is_refused_of_what_belongs_to_the_cluster(
    api: Api, plural: str, obj: Object, patch: Object, field: str, text: str
) -> None:
    name = f"fixed-{api.namespace}"
    collection = api.url(plural, namespace="")
    api.send("POST", collection, {**obj, "metadata": {"name": name}})
    try:
        with refused(422, "Invalid", text) as caught:
            api.send("PATCH", f"{collection}/{name}", patch, type_="application/merge-patch+json")
        assert field in caught.value.fields
    finally:
        api.send("DELETE", f"{collection}/{name}")


def test_a_suspended_job_may_still_be_placed_elsewhere(api: Api) -> None:
    api.create("jobs", {"metadata": {"name": "j"}, "spec": JOB})
    changed = api.patch("jobs", "j", {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}})
    assert changed["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}
    assert changed["metadata"]["generation"] == 2


def test_a_gate_may_go_and_a_deadline_come_nearer(api: Api) -> None:
    api.create("pods", a_pod(schedulingGates=[{"name": "a.b/c"}], activeDeadlineSeconds=9))
    changed = api.patch("pods", "p", {"spec": {"schedulingGates": None, "activeDeadlineSeconds": 5}})
    assert (changed["spec"].get("schedulingGates"), changed["spec"]["activeDeadlineSeconds"]) == (None, 5)


def test_a_service_keeps_its_address_when_a_manifest_does_not_name_it(api: Api) -> None:
    created = api.create("services", a_service())
    again = api.update("services", {**a_service(), "metadata": {"name": "svc", "labels": {"a": "b"}}})
    assert again["spec"]["clusterIP"] == created["spec"]["clusterIP"]


@pytest.mark.parametrize(
    ("plural", "obj", "field", "text"),
    [
        ("cronjobs", spec_of("cronjobs", timeZone="Nowhere/Land"), "spec.timeZone", "unknown time zone Nowhere/Land"),
        ("cronjobs", spec_of("cronjobs", schedule="TZ=UTC 0 0 * * *"), "spec.schedule", "cannot use TZ or CRON_TZ"),
        ("discovery.k8s.io/v1/endpointslices", {"endpoints": []}, "addressType", "Required value"),
        ("resourcequotas", {"spec": {"hard": {"pods": "-1"}}}, "spec.hard[pods]", "must be greater than or equal to 0"),
        (
            "services",
            a_service(loadBalancerClass="a.b/c"),
            "spec.loadBalancerClass",
            "may only be used when `type` is 'LoadBalancer'",
        ),
    ],
)
def test_it_is_wrong_from_the_start(api: Api, plural: str, obj: Object, field: str, text: str) -> None:
    with refused(422, "Invalid", text) as caught:
        api.create(plural, {**obj, "metadata": {"name": "wrong"}})
    assert field in caught.value.fields
