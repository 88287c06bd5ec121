"""Each part of a pod that kube-apiserver refuses is refused with its field."""

from copy import deepcopy
from typing import Any

import pytest

from federation.apimachinery.dotpaths import value_at
from federation.apiserver.semantics.strategies.pods import PodStrategy, PodTemplateStrategy

Object = dict[str, Any]
POD = PodStrategy()
VOLUMES = [
    {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
    {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
    {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "host", "hostPath": {"path": "/var", "type": "Directory"}},
    {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    {
        "name": "projected",
        "projected": {"sources": [{"secret": {"name": "s"}}, {"serviceAccountToken": {"path": "token"}}]},
    },
    {
        "name": "ephemeral",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        },
    },
    {"name": "nfs", "nfs": {"server": "a", "path": "/b"}},
    {"name": "csi", "csi": {"driver": "d.example.com"}},
    {"name": "iscsi", "iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:s", "lun": 1}},
]
CONTAINER = {
    "name": "main",
    "image": "nginx:1",
    "env": [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "c"}}],
    "volumeMounts": [{"name": "config", "mountPath": "/etc", "subPath": "a"}],
    "volumeDevices": [{"name": "claim", "devicePath": "/dev/x"}],
    "resources": {"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}},
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "a"}},
    "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "X-A", "value": "b"}]}},
    "readinessProbe": {"tcpSocket": {"port": "web"}},
    "startupProbe": {"grpc": {"port": 80}},
    "lifecycle": {"preStop": {"exec": {"command": ["a"]}}, "postStart": {"sleep": {"seconds": 1}}},
}
NODE_TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
POD_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
SPEC = {
    "volumes": VOLUMES,
    "containers": [CONTAINER],
    "initContainers": [{"name": "init", "image": "a"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM]},
    },
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["10.0.0.10"], "searches": ["a.example"], "options": [{"name": "ndots"}]},
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.example"]}],
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "schedulingGates": [{"name": "example.com/gate"}],
    "securityContext": {"fsGroup": 1, "sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "hostname": "a",
    "os": {"name": "linux"},
}
_MAIN = "spec.containers[0]"
_REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def a_pod() -> Object:
    pod: Object = {"metadata": {"name": "full"}, "spec": deepcopy(SPEC)}
    POD.default(pod)
    return pod


def causes_of(pod: Object) -> set[tuple[str, str]]:
    return {(found["field"], found["reason"]) for found in POD.validate(pod)}


def test_a_pod_with_everything_set_is_valid() -> None:
    assert POD.validate(a_pod()) == []


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        ("volumes.0.configMap.name", "", "spec.volumes[0].configMap.name", "Required"),
        ("volumes.0.configMap.items.0.path", "../a", "spec.volumes[0].configMap.items[0].path", "Invalid"),
        ("volumes.1.secret.defaultMode", 512, "spec.volumes[1].secret.defaultMode", "Invalid"),
        ("volumes.2.emptyDir.sizeLimit", "-1", "spec.volumes[2].emptyDir.sizeLimit", "Forbidden"),
        ("volumes.3.persistentVolumeClaim", {}, "spec.volumes[3].persistentVolumeClaim.claimName", "Required"),
        ("volumes.4.hostPath.type", "Pipe", "spec.volumes[4].hostPath.type", "NotSupported"),
        ("volumes.4.hostPath.path", "/a/../b", "spec.volumes[4].hostPath.path", "Invalid"),
        ("volumes.5.downwardAPI.items.0.fieldRef", None, "spec.volumes[5].downwardAPI", "Required"),
        ("volumes.5.downwardAPI.items.0.fieldRef.fieldPath", "spec.nodeName", None, "NotSupported"),
        ("volumes.6.projected.sources.0.secret.name", "", None, "Required"),
        ("volumes.6.projected.sources.1.serviceAccountToken.expirationSeconds", 5, None, "Invalid"),
        ("volumes.7.ephemeral.volumeClaimTemplate.spec.accessModes", [], None, "Required"),
        ("volumes.7.ephemeral.volumeClaimTemplate.spec.resources.requests.storage", "0", None, "Invalid"),
        ("volumes.8.nfs.path", "b", "spec.volumes[8].nfs.path", "Invalid"),
        ("volumes.9.csi.driver", "a_b", "spec.volumes[9].csi.driver", "Invalid"),
        ("volumes.10.iscsi.lun", 300, "spec.volumes[10].iscsi.lun", "Invalid"),
        ("volumes.10.iscsi.iqn", "iqn.x", "spec.volumes[10].iscsi.iqn", "Invalid"),
        ("volumes.1", {"name": "none"}, "spec.volumes[1]", "Required"),
        ("containers.0.env.0.valueFrom.fieldRef.fieldPath", "spec.nope", None, "Invalid"),
        ("containers.0.env.1.valueFrom.resourceFieldRef.divisor", "1k", None, "Invalid"),
        ("containers.0.env.2.valueFrom.secretKeyRef.key", "a b", None, "Invalid"),
        ("containers.0.envFrom.0", {"prefix": "A_"}, f"{_MAIN}.envFrom", "Invalid"),
        ("containers.0.volumeMounts.0.subPath", "/a", f"{_MAIN}.volumeMounts.subPath", "Invalid"),
        ("containers.0.volumeMounts.0.mountPropagation", "Bidirectional", None, "Forbidden"),
        ("containers.0.volumeDevices.0.name", "host", f"{_MAIN}.volumeDevices[0].name", "Invalid"),
        ("containers.0.resources.limits.example.com/gpu", "500m", None, "Invalid"),
        ("containers.0.resizePolicy.0.resourceName", "disk", f"{_MAIN}.resizePolicy", "NotSupported"),
        ("containers.0.securityContext.runAsUser", -1, f"{_MAIN}.securityContext.runAsUser", "Invalid"),
        ("containers.0.securityContext.seccompProfile.type", "Unconfined", None, "Invalid"),
        ("containers.0.livenessProbe.httpGet.httpHeaders.0.name", "a b", None, "Invalid"),
        ("containers.0.readinessProbe.tcpSocket.port", 0, f"{_MAIN}.readinessProbe.tcpSocket.port", "Invalid"),
        ("containers.0.startupProbe.grpc.port", 70000, f"{_MAIN}.startupProbe.grpc.port", "Invalid"),
        ("containers.0.lifecycle.preStop.exec", {}, f"{_MAIN}.lifecycle.preStop.exec.command", "Required"),
        ("containers.0.lifecycle.postStart.sleep.seconds", 31, f"{_MAIN}.lifecycle.postStart.sleep", "Invalid"),
        ("containers.0.terminationMessagePolicy", "Log", f"{_MAIN}.terminationMessagePolicy", "NotSupported"),
        ("initContainers.0.name", "main", "spec.initContainers[0].name", "Duplicate"),
        ("initContainers.0.livenessProbe", {"grpc": {"port": 1}}, None, "Forbidden"),
        ("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", {}, _REQUIRED, "Required"),
        (f"{_REQUIRED[5:]}.0.matchExpressions.0.values", [], None, "Required"),
        (f"{_REQUIRED[5:]}.0.matchExpressions.0.operator", "Like", None, "Invalid"),
        (f"{_REQUIRED[5:]}.0.matchFields", [{"key": "spec.x", "operator": "In", "values": ["a"]}], None, "Invalid"),
        ("affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.topologyKey", "", None, "Required"),
        ("dnsConfig.nameservers", [], "spec.dnsConfig.nameservers", "Required"),
        ("dnsConfig.nameservers.0", "a", "spec.dnsConfig.nameservers[0]", "Invalid"),
        ("dnsConfig.searches.0", "A!", "spec.dnsConfig.searches[0]", "Invalid"),
        ("hostAliases.0.ip", "300.1.1.1", "spec.hostAliases[0].ip", "Invalid"),
        ("readinessGates.0.conditionType", "", "spec.readinessGates[0].conditionType", "Invalid"),
        ("schedulingGates.0.name", "a b", "spec.schedulingGates[0]", "Invalid"),
        ("securityContext.sysctls.0.name", "A", "spec.securityContext.sysctls[0].name", "Invalid"),
        ("tolerations.0.value", "x", "spec.tolerations[0].operator", "Invalid"),
        ("topologySpreadConstraints.0.minDomains", 0, "spec.topologySpreadConstraints[0].minDomains", "Invalid"),
        ("hostname", "a.b", "spec.hostname", "Invalid"),
        ("os.name", "beos", "spec.os", "NotSupported"),
    ],
)
def test_a_wrong_field_of_a_pod_is_reported(path: str, value: Any, field: str | None, reason: str) -> None:
    pod = a_pod()
    parent: Any = pod["spec"]
    steps = (
        path.split(".")
        if "example.com" not in path
        else [*path.partition("example")[0].split(".")[:-1], "example.com/gpu"]
    )
    for step in steps[:-1]:
        parent = parent[int(step)] if step.isdigit() else parent[step]
    last = steps[-1]
    if value is None:
        del parent[last]
    else:
        parent[int(last) if last.isdigit() else last] = value
    found = causes_of(pod)
    assert any(at.startswith("spec.") and why == f"FieldValue{reason}" for at, why in found), found
    assert field is None or (field, f"FieldValue{reason}") in found, found


def test_a_container_cannot_mount_an_invalid_volume() -> None:
    pod = a_pod()
    pod["spec"]["volumes"][0]["configMap"] = {}
    assert ("spec.containers[0].volumeMounts[0].name", "FieldValueNotFound") in causes_of(pod)


def test_a_pod_template_has_no_ephemeral_containers() -> None:
    template = {
        "metadata": {"annotations": {"A!": ""}},
        "spec": {**deepcopy(SPEC), "ephemeralContainers": [{"name": "e", "image": "i"}]},
    }
    obj: Object = {"metadata": {"name": "t"}, "template": template}
    strategy = PodTemplateStrategy()
    strategy.default(obj)
    assert {found["field"] for found in strategy.validate(obj)} == {
        "template.annotations",
        "template.spec.ephemeralContainers",
    }
    assert value_at(obj, "template.spec.containers")
