"""Admission that every API server has without configuration: classes, service accounts, Pod Security, storage in use."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_deployment, a_pod
from tests.support.rest import Api, Object, Refused, eventually, refused, until_not_refused

SECURITY = "pod-security.kubernetes.io/"
SAFE: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
UNSAFE = (
    'allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false),'
    ' unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]),'
    ' runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true),'
    ' seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or'
    ' "Localhost")'
)


def contained(context: Object | None = None, **fields: Any) -> Object:
    """Return a pod with a security context of its container, and more fields of its spec."""
    pod = a_pod(**fields)
    pod["spec"]["containers"][0]["securityContext"] = context or {}
    return pod


def create_pod(api: Api, pod: Object, **query: Any) -> Object:
    """Create a pod; a new namespace gets its service account a moment later."""
    return until_not_refused(lambda: api.create("pods", pod, **query), 'serviceaccount "default" not found')


def label(api: Api, **labels: str) -> list[str]:
    """Set labels of Pod Security on the namespace and return the warnings; `_` stands for `-`."""
    changed = {SECURITY + name.replace("_", "-"): value for name, value in labels.items()}
    answer = api.send(
        "PATCH",
        api.url("namespaces", api.namespace),
        {"metadata": {"labels": changed}},
        type_="application/merge-patch+json",
    )
    return warnings_of(answer)


def warnings_of(answer: Any) -> list[str]:
    texts = [header.split(" ", 2)[2].strip()[1:-1] for header in answer.headers.get_list("warning")]
    return [text.replace('\\"', '"') for text in texts]


def until_seen(api: Api, text: str) -> None:
    """Wait until the server's admission uses the labels of the namespace, which it may learn a moment later."""

    def is_seen() -> bool:
        try:
            api.create("pods", contained({"privileged": True}), dryRun="All")
        except Refused as refusal:
            if (refusal.code, refusal.reason) != (403, "Forbidden"):
                raise
            return text in refusal.message
        return False

    eventually(is_seen)


@pytest.fixture
def a_class(api: Api) -> Iterator[str]:
    name = f"high-{uuid.uuid4().hex[:8]}"
    api.create("priorityclasses", {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"})
    yield name
    api.delete("priorityclasses", name)


def test_a_pod_gets_the_priority_of_its_class(api: Api, a_class: str) -> None:
    pod = until_not_refused(
        lambda: create_pod(api, a_pod(priorityClassName=a_class)), f"no PriorityClass with name {a_class} was found"
    )
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (1000, "Never")
    pod = create_pod(api, a_pod("plain"))
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    critical = create_pod(api, a_pod("critical", priorityClassName="system-node-critical"))
    assert critical["spec"]["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priorityClassName": "unknown"}, "no PriorityClass with name unknown was found"),
        ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec; priority admission"),
        ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided in pod"),
        ({"runtimeClassName": "unknown"}, 'pod rejected: RuntimeClass "unknown" not found'),
        ({"overhead": {"cpu": "1"}}, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined"),
        ({"serviceAccountName": "unknown"}, 'serviceaccount "unknown" not found'),
    ],
    ids=str,
)
def test_a_pod_that_names_what_does_not_exist_is_refused(api: Api, spec: Object, text: str) -> None:
    create_pod(api, a_pod("first"))
    with refused(403, "Forbidden", text) as caught:
        api.create("pods", a_pod(**spec))
    assert caught.value.message.startswith('pods "p" is forbidden: ')


def test_names_with_the_prefix_of_the_system_belong_to_the_system(api: Api) -> None:
    name = f"system-{uuid.uuid4().hex[:8]}"
    with refused(422, "Invalid", f"error: {name} is not a known system priority class"):
        api.create("priorityclasses", {"metadata": {"name": name}, "value": 1})


def test_a_pod_gets_overhead_and_scheduling_of_its_runtime_class(api: Api) -> None:
    name = f"sandboxed-{uuid.uuid4().hex[:8]}"
    kind = "node.k8s.io/v1/runtimeclasses"
    runtime: Object = {
        "metadata": {"name": name},
        "handler": "sandboxed",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"runtime": "sandboxed"}, "tolerations": [{"key": "sandboxed"}]},
    }
    path = f"/apis/{kind}"
    api.send("POST", path, runtime)
    try:
        found = f'RuntimeClass "{name}" not found'
        pod = until_not_refused(lambda: create_pod(api, a_pod(runtimeClassName=name)), found)
        assert pod["spec"]["overhead"] == {"cpu": "250m"}
        assert pod["spec"]["nodeSelector"] == {"runtime": "sandboxed"}
        assert {"key": "sandboxed"} in pod["spec"]["tolerations"]
        with refused(403, "Forbidden", "conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandboxed;"):
            api.create("pods", a_pod("q", runtimeClassName=name, nodeSelector={"runtime": "other"}))
        with refused(403, "Forbidden", "Pod's Overhead doesn't match RuntimeClass's defined Overhead"):
            api.create("pods", a_pod("q", runtimeClassName=name, overhead={"cpu": "1"}))
    finally:
        api.send("DELETE", f"{path}/{name}")


def test_a_pod_gets_the_image_pull_secrets_of_its_service_account(api: Api) -> None:
    api.create("serviceaccounts", {"metadata": {"name": "builder"}, "imagePullSecrets": [{"name": "registry"}]})
    pod = until_not_refused(
        lambda: create_pod(api, a_pod(serviceAccountName="builder")), 'serviceaccount "builder" not found'
    )
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_enforced_pod_security_refuses_pods_and_warns_about_templates(api: Api) -> None:
    create_pod(api, a_pod("first"))
    label(api, enforce="restricted")
    until_seen(api, 'violates PodSecurity "restricted:latest"')
    with refused(403, "Forbidden") as caught:
        api.create("pods", contained())
    assert caught.value.message == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {UNSAFE}'
    api.create("pods", contained(SAFE))
    answer = api.send("POST", api.url("deployments"), a_deployment())
    assert f'would violate PodSecurity "restricted:latest": {UNSAFE}' in warnings_of(answer)


VIOLATIONS: list[tuple[Object, Object, str]] = [
    ({"privileged": True}, {}, 'privileged (container "main" must not set securityContext.privileged=true)'),
    ({}, {"hostNetwork": True, "hostPID": True}, "host namespaces (hostNetwork=true, hostPID=true)"),
    (
        {"capabilities": {"add": ["SYS_TIME", "NET_ADMIN"]}},
        {},
        (
            'non-default capabilities (container "main" must not include "NET_ADMIN", "SYS_TIME" in'
            " securityContext.capabilities.add)"
        ),
    ),
    (
        {},
        {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
        'hostPath volumes (volume "root")',
    ),
    (
        {"seccompProfile": {"type": "Unconfined"}},
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        'seccompProfile (pod and container "main" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        {"seLinuxOptions": {"type": "spc_t", "user": "u"}},
        {},
        (
            'seLinuxOptions (container "main" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be'
            " set)"
        ),
    ),
    (
        {},
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
        "forbidden sysctls (kernel.msgmax)",
    ),
    (
        {"appArmorProfile": {"type": "Unconfined"}},
        {},
        'forbidden AppArmor profile (container "main" must not set AppArmor profile type to "Unconfined")',
    ),
]


def test_the_baseline_names_each_violation(api: Api) -> None:
    create_pod(api, a_pod("first"))
    label(api, enforce="baseline", enforce_version="v1.34")
    until_seen(api, 'violates PodSecurity "baseline:v1.34"')
    for context, spec, text in VIOLATIONS:
        with refused(403, "Forbidden") as caught:
            api.create("pods", contained(context, **spec))
        assert caught.value.message == f'pods "p" is forbidden: violates PodSecurity "baseline:v1.34": {text}'


def test_a_version_has_the_checks_of_its_time(api: Api) -> None:
    create_pod(api, a_pod("first"))
    pod = contained({"allowPrivilegeEscalation": False, "runAsNonRoot": True})
    label(api, enforce="restricted", enforce_version="v1.18")
    until_seen(api, 'violates PodSecurity "restricted:v1.18"')
    api.create("pods", pod, dryRun="All")
    label(api, enforce_version="v1.19")
    until_seen(api, 'violates PodSecurity "restricted:v1.19"')
    with refused(403, "Forbidden", "seccompProfile (pod or container"):
        api.create("pods", pod)


def test_a_stricter_namespace_warns_about_its_pods(api: Api) -> None:
    for name in ("a", "b"):
        create_pod(api, a_pod(name))
    first = (
        f'existing pods in namespace "{api.namespace}" violate the new PodSecurity enforce level "restricted:latest"'
    )
    reasons = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    assert label(api, enforce="restricted") == [first, f"a (and 1 other pod): {reasons}"]


def test_labels_of_pod_security_must_be_readable(api: Api) -> None:
    field = f"metadata.labels[{SECURITY}enforce]"
    with refused(422, "Invalid", f'{field}: Invalid value: "high": must be one of privileged, baseline, restricted'):
        label(api, enforce="high")
    with refused(422, "Invalid", 'must be "latest" or "v1.x"'):
        label(api, warn="baseline", warn_version="1.30")


def test_a_claim_stays_while_a_pod_with_a_node_uses_it(api: Api) -> None:
    claim: Object = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }
    created = api.create("persistentvolumeclaims", claim)
    assert created["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    create_pod(api, a_pod(volumes=volumes, nodeName="none"))
    api.delete("persistentvolumeclaims", "data")
    assert api.get("persistentvolumeclaims", "data")["metadata"]["deletionTimestamp"]


def test_a_volume_has_the_finalizer_that_protects_it(api: Api) -> None:
    name = f"disk-{uuid.uuid4().hex[:8]}"
    volume = {
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/disk"}},
    }
    created = api.create("persistentvolumes", volume)
    assert created["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    api.delete("persistentvolumes", name)


def test_a_claim_gets_the_default_storage_class(api: Api) -> None:
    name = f"fast-{uuid.uuid4().hex[:8]}"
    path = "/apis/storage.k8s.io/v1/storageclasses"
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    api.send("POST", path, {"metadata": {"name": name, "annotations": annotations}, "provisioner": "example.com/disk"})
    try:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

        def class_of_new_claim() -> bool:
            claim = api.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec}, dryRun="All")
            return claim["spec"].get("storageClassName") == name

        eventually(class_of_new_claim)
        given = {"metadata": {"name": "c"}, "spec": {**spec, "storageClassName": ""}}
        assert api.create("persistentvolumeclaims", given, dryRun="All")["spec"]["storageClassName"] == ""
    finally:
        api.send("DELETE", f"{path}/{name}")
