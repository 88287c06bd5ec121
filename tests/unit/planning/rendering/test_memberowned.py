"""Fields that controllers or the API server of a member change by design."""

from typing import Any

import pytest

from federation.planning.rendering.memberowned import (
    OF_ANY_KIND,
    QUEUE_LABEL,
    ROWS,
    keep_member_values,
    without_assumed_values,
    without_member_fields,
)

RBAC, CORE, BATCH = "rbac.authorization.k8s.io/v1", "v1", "batch/v1"
ADMISSION, EXTENSIONS, REGISTRATION = (f"{group}.k8s.io/v1" for group in ("admissionregistration", "apiextensions", "apiregistration"))  # fmt: skip
JOB_LIVE = {"spec": {"selector": {"uid": "1"}, "template": {"metadata": {"labels": {"uid": "1"}}}}}
QUEUED = {"metadata": {"labels": {QUEUE_LABEL: "team"}}}
SELECTOR = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
INJECTED = {"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "shop/ca"}}}
BLANK = "Cg=="


def a_claim(size: Any) -> dict[str, Any]:
    return {"spec": {"resources": {"requests": {"storage": size}}}}


def a_volume(size: str) -> dict[str, Any]:
    return {"spec": {"capacity": {"storage": size}}}


def tolerating(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"tolerations": list(tolerations)}}


def gated(*gates: str) -> dict[str, Any]:
    return {"spec": {"schedulingGates": [{"name": gate} for gate in gates]}}


def queued(**spec: Any) -> dict[str, Any]:
    return {**QUEUED, "spec": spec}


def in_part(**spec: Any) -> dict[str, Any]:
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    return {"metadata": {**QUEUED["metadata"], "annotations": annotations}, "spec": spec}


def selecting(selector: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"webhooks": [{"name": "a", "namespaceSelector": selector, "objectSelector": selector, **fields}]}


def webhooks(**bundles: str) -> dict[str, Any]:
    return {"webhooks": [{"name": name, "clientConfig": {"caBundle": value}} for name, value in bundles.items()]}


def conversion(bundle: str) -> dict[str, Any]:
    return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}


@pytest.mark.parametrize(
    ("version", "kind", "desired", "live", "expected"),
    [
        # Roles whose rules a controller adds up.
        (RBAC, "ClusterRole", {"aggregationRule": SELECTOR}, {"rules": [1]}, {"aggregationRule": SELECTOR, "rules": [1]}),
        (RBAC, "ClusterRole", {"aggregationRule": SELECTOR}, {"rules": None}, {"aggregationRule": SELECTOR}),
        (RBAC, "ClusterRole", {"rules": [2]}, {"rules": [1], "aggregationRule": SELECTOR}, {"rules": [2]}),
        (RBAC, "Role", {"rules": [2]}, {"rules": [1]}, {"rules": [2]}),
        # What can only grow.
        (CORE, "PersistentVolumeClaim", a_claim("1Gi"), a_claim("2Gi"), a_claim("2Gi")),
        (CORE, "PersistentVolumeClaim", a_claim("3Gi"), a_claim("2Gi"), a_claim("3Gi")),
        (CORE, "PersistentVolumeClaim", a_claim("1Gi"), a_claim("1024Mi"), a_claim("1Gi")),
        (CORE, "PersistentVolumeClaim", a_claim("1Gi"), a_claim("nonsense"), a_claim("1Gi")),
        (CORE, "PersistentVolumeClaim", a_claim("1Gi"), a_claim(None), a_claim("1Gi")),
        (CORE, "PersistentVolumeClaim", a_claim("1Gi"), {"spec": "odd"}, a_claim("1Gi")),
        (CORE, "PersistentVolume", a_volume("1Gi"), a_volume("2Gi"), a_volume("2Gi")),
        (CORE, "PersistentVolume", a_volume("3Gi"), a_volume("2Gi"), a_volume("3Gi")),
        # What is bound.
        (CORE, "PersistentVolumeClaim", {"spec": {"volumeName": "a"}}, {"spec": {"volumeName": "b"}}, {"spec": {"volumeName": "b"}}),
        (CORE, "PersistentVolumeClaim", {"spec": {}}, {"spec": {"volumeName": "b"}}, {"spec": {}}),
        (CORE, "PersistentVolume", {"spec": {"claimRef": {}}}, {"spec": {"claimRef": {"uid": "1"}}}, {"spec": {"claimRef": {"uid": "1"}}}),
        # Credentials of service accounts.
        (CORE, "ServiceAccount", {"secrets": []}, {"secrets": [{"name": "a"}]}, {}),
        (CORE, "ServiceAccount", {"secrets": [{"name": "b"}]}, {"secrets": [{"name": "a"}]}, {"secrets": [{"name": "b"}]}),
        (CORE, "ServiceAccount", {"secrets": []}, {}, {"secrets": []}),
        (CORE, "ServiceAccount", {}, {"secrets": [{"name": "a"}]}, {}),
        # Jobs: what an API server generates, and what a queue decides.
        (BATCH, "Job", {"spec": {"selector": {"x": 1}}}, JOB_LIVE, {"spec": {"selector": {"uid": "1"}}}),
        (BATCH, "Job", {"spec": {}}, JOB_LIVE, {"spec": {}}),
        ("batch.volcano.sh/v1alpha1", "Job", {"spec": {"selector": {"x": 1}}}, JOB_LIVE, {"spec": {"selector": {"x": 1}}}),
        (
            BATCH,
            "Job",
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            JOB_LIVE,
            {"spec": {"template": {"metadata": {"labels": {"uid": "1"}}}}},
        ),
        (
            BATCH,
            "Job",
            {"spec": {"manualSelector": True, "selector": {"x": 1}}},
            JOB_LIVE,
            {"spec": {"manualSelector": True, "selector": {"x": 1}}},
        ),
        (BATCH, "Job", {"spec": {}}, {"spec": {"suspend": True}}, {"spec": {}}),
        (BATCH, "Job", {"spec": {"suspend": True}}, {"spec": {"suspend": False}}, {"spec": {"suspend": True}}),
        (BATCH, "Job", queued(suspend=True), {"spec": {"suspend": False}}, queued(suspend=False)),
        (BATCH, "Job", {"spec": {"suspend": True}}, queued(suspend=False), {"spec": {"suspend": False}}),
        (BATCH, "Job", queued(suspend=True), {"spec": {}}, queued(suspend=True)),
        (BATCH, "CronJob", queued(suspend=True), {"spec": {"suspend": False}}, queued(suspend=True)),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", queued(suspend=True), {"spec": {"suspend": False}}, queued(suspend=False)),
        (
            "kubeflow.org/v1",
            "TFJob",
            queued(runPolicy={"suspend": True}),
            {"spec": {"runPolicy": {"suspend": False}}},
            queued(runPolicy={"suspend": False}),
        ),
        (BATCH, "Job", in_part(parallelism=5), {"spec": {"parallelism": 2}}, in_part(parallelism=2)),
        (BATCH, "Job", queued(parallelism=5), {"spec": {"parallelism": 2}}, queued(parallelism=5)),
        (
            BATCH,
            "Job",
            queued(template=tolerating({"key": "a"})),
            {"spec": {"template": tolerating({"key": "a"}, {"key": "gpu"})}},
            queued(template=tolerating({"key": "a"}, {"key": "gpu"})),
        ),
        (
            BATCH,
            "Job",
            queued(template=tolerating({"key": "a"})),
            {"spec": {"template": tolerating({"key": "gpu"})}},
            queued(template=tolerating({"key": "a"})),
        ),
        # Pods.
        (
            CORE,
            "Pod",
            {"spec": {"containers": [{"name": "a", "resources": {"x": 1}}, {"name": "b"}, {"name": "c", "resources": {}}]}},
            {"spec": {"containers": [{"name": "a", "resources": {"y": 2}}, {"name": "b", "resources": {"y": 2}}]}},
            {"spec": {"containers": [{"name": "a", "resources": {"y": 2}}, {"name": "b"}, {"name": "c", "resources": {}}]}},
        ),
        (
            CORE,
            "Pod",
            {"spec": {"initContainers": [{"name": "a", "resources": {"x": 1}}]}},
            {"spec": {"initContainers": [{"name": "a"}, "nonsense"]}},
            {"spec": {"initContainers": [{"name": "a", "resources": {}}]}},
        ),
        (CORE, "Pod", tolerating({"key": "a"}), tolerating({"key": "b"}), tolerating({"key": "a"}, {"key": "b"})),
        (
            CORE,
            "Pod",
            tolerating({"key": "a", "tolerationSeconds": 5}),
            tolerating({"key": "a", "tolerationSeconds": 9}, {"key": "b"}),
            tolerating({"key": "a", "tolerationSeconds": 5}, {"key": "b"}),
        ),
        (CORE, "Pod", {"spec": {}}, tolerating({"key": "b"}), {"spec": {}}),
        (CORE, "Pod", gated("a", "b"), gated("b"), gated("b")),
        (CORE, "Pod", gated("a"), {"spec": {}}, {"spec": {}}),
        # Certificates that an injector writes.
        (ADMISSION, "ValidatingWebhookConfiguration", {**INJECTED, **webhooks(a="old", b="x")}, webhooks(a="new"), {**INJECTED, **webhooks(a="new", b="x")}),
        (ADMISSION, "ValidatingWebhookConfiguration", webhooks(a=BLANK), webhooks(a="new"), webhooks(a="new")),
        (ADMISSION, "ValidatingWebhookConfiguration", webhooks(a="bWluZQ=="), webhooks(a="new"), webhooks(a="bWluZQ==")),
        (ADMISSION, "MutatingWebhookConfiguration", {**INJECTED, **webhooks(a="old")}, webhooks(a="new"), {**INJECTED, **webhooks(a="new")}),
        (ADMISSION, "MutatingWebhookConfiguration", webhooks(a=""), webhooks(a="new"), webhooks(a="new")),
        # What an operator completes, if its manifest has no rules.
        (ADMISSION, "ValidatingWebhookConfiguration", selecting({}), selecting({"a": 1}), selecting({"a": 1})),
        (ADMISSION, "MutatingWebhookConfiguration", selecting({"b": 2}), selecting({"a": 1}), selecting({"b": 2})),
        (ADMISSION, "MutatingWebhookConfiguration", selecting({}, rules=[{}]), selecting({"a": 1}), selecting({}, rules=[{}])),
        (EXTENSIONS, "CustomResourceDefinition", {**INJECTED, **conversion("old")}, conversion("new"), {**INJECTED, **conversion("new")}),
        (EXTENSIONS, "CustomResourceDefinition", conversion(BLANK), conversion("new"), conversion("new")),
        (EXTENSIONS, "CustomResourceDefinition", conversion("not base64"), conversion("new"), conversion("not base64")),
        (REGISTRATION, "APIService", {"spec": {"caBundle": BLANK}}, {"spec": {"caBundle": "new"}}, {"spec": {"caBundle": "new"}}),
        (REGISTRATION, "APIService", {**INJECTED, "spec": {"caBundle": "old"}}, {"spec": {"caBundle": "new"}}, {**INJECTED, "spec": {"caBundle": "new"}}),
        ("apps/v1", "Deployment", {"spec": {"volumeName": "a"}}, {"spec": {"volumeName": "b"}}, {"spec": {"volumeName": "a"}}),
    ],
)  # fmt: skip
def test_a_field_that_the_member_changes_by_design_keeps_its_value(
    version: str, kind: str, desired: dict[str, Any], live: dict[str, Any], expected: dict[str, Any]
) -> None:
    head = {"apiVersion": version, "kind": kind}
    assert keep_member_values({**head, **desired}, live) == {**head, **expected}
    # What is sent is what the member has, so that nothing is corrected for ever.
    kept = {**head, **expected}
    assert keep_member_values(kept, {**live, **expected}) == kept


@pytest.mark.parametrize(
    ("kind", "row"), [(resource.kind, row) for resource, rows in ROWS.items() for row in rows] + [("Job", row) for row in OF_ANY_KIND]
)  # fmt: skip
@pytest.mark.parametrize("nonsense", [None, 7, "x", [1], {"spec": [], "webhooks": 3, "metadata": "x"}])
def test_nonsense_of_a_member_is_not_taken_over(kind: str, row: Any, nonsense: Any) -> None:
    (version,) = {resource.api_version for resource in ROWS if resource.kind == kind}
    wanted: Any = {"x": 1}
    for step in reversed(row.path.split(".")[:-1]):
        wanted = {step.removesuffix("[]"): [{"name": "a", **wanted}] if step.endswith("[]") else wanted}
    wanted = {"apiVersion": version, "kind": kind, **INJECTED, **wanted}
    live = nonsense if isinstance(nonsense, dict) else {row.path.split(".")[0].removesuffix("[]"): nonsense}
    if "." in row.path:
        assert keep_member_values(wanted, live) == wanted


def test_rules_that_a_controller_adds_up_are_not_delivered() -> None:
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "rules": [{"verbs": ["get"]}]}
    assert without_member_fields(role) is role
    assert "rules" not in without_member_fields({**role, "aggregationRule": SELECTOR})
    assert "rules" in without_member_fields({**role, "aggregationRule": SELECTOR, "apiVersion": "example.org/v1"})


def test_a_job_is_delivered_without_the_default_of_suspend() -> None:
    job = {"apiVersion": BATCH, "kind": "Job", "spec": {"suspend": False, "parallelism": 2}}
    assert without_assumed_values(job)["spec"] == {"parallelism": 2}
    for other in ({**job, "spec": {"suspend": True}}, {**job, "kind": "CronJob"}, {**job, "spec": "odd"}):
        assert without_assumed_values(other) is other
