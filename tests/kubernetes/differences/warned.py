"""Objects that are accepted with a warning, or refused by bounds that are in no schema: fragments of pods and others."""

from collections.abc import Iterator
from typing import Any, Final

from tests.kubernetes.differences.requests import Request, request, targets, within
from tests.support.rest import Object

_C: Final[Object] = {"name": "c", "image": "i"}


def _container(**fields: Any) -> Object:
    return {"containers": [{**_C, **fields}]}


def _volume(**source: Any) -> Object:
    return {"volumes": [{"name": "v", **source}]}


_ITEMS: Final = [
    {"key": "a", "path": "p"},
    {"key": "b", "path": "p/q"},
    {"key": "c", "path": "p"},
    {"key": "d", "path": "o"},
]
_TERM: Final = {"topologyKey": "kubernetes.io/hostname"}
_NODES: Final = {
    "matchExpressions": [
        {"key": "beta.kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["No such!"]},
    ]
}
_SPREAD: Final[Object] = {
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}},
}  # fmt: skip
POD_SPECS: Final[dict[str, Object]] = {
    **{
        f"nodeSelector {label}": {"nodeSelector": {label: "x"}}
        for label in (
            *("beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type"),
            *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "kubernetes.io/os"),
        )
    },
    "required node affinity": {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODES, {}]}}
        }
    },
    "preferred node affinity": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": _NODES},
                    {"weight": 2, "preference": {}},
                ]
            }
        }
    },
    "affinity without selector": {
        "affinity": {
            name: {
                "requiredDuringSchedulingIgnoredDuringExecution": [_TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _TERM}],
            }
            for name in ("podAffinity", "podAntiAffinity")
        }
    },
    "spread without selector": {"topologySpreadConstraints": [{**_SPREAD, "labelSelector": None}]},
    "spread over beta label": {
        "topologySpreadConstraints": [{**_SPREAD, "topologyKey": "failure-domain.beta.kubernetes.io/zone"}]
    },
    "git": _volume(gitRepo={"repository": "r"}),
    "photon": _volume(photonPersistentDisk={"pdID": "p"}),
    "scaleIO": _volume(scaleIO={"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}),
    "flocker": _volume(flocker={"datasetName": "d"}),
    "storageos": _volume(storageos={"volumeName": "v"}),
    "quobyte": _volume(quobyte={"registry": "r:1", "volume": "v"}),
    "glusterfs": _volume(glusterfs={"endpoints": "e", "path": "p"}),
    "cephfs": _volume(cephfs={"monitors": ["m"]}),
    "rbd": _volume(rbd={"monitors": ["m"], "image": "i"}),
    "ephemeral claim": _volume(
        ephemeral={
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}
            }
        }
    ),
    "configMap items": _volume(configMap={"name": "m", "items": _ITEMS}),
    "secret items": _volume(secret={"secretName": "s", "items": _ITEMS}),
    "downward items": _volume(
        downwardAPI={
            "items": [{"path": path, "fieldRef": {"fieldPath": "metadata.name"}} for path in ("a", "a/b", "a")]
        }
    ),
    "projected": _volume(
        projected={
            "sources": [
                {"configMap": {"name": "m", "items": _ITEMS[:1]}},
                {"secret": {"name": "s", "items": _ITEMS[:2]}},
                {"serviceAccountToken": {"path": "p/"}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        }
    ),
    "projected empty": _volume(projected={"sources": [{}]}),
    "projected none": _volume(projected={"sources": []}),
    "host aliases twice": {
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}]
    },
    "host alias zeros": {"hostAliases": [{"ip": "01.2.3.4", "hostnames": ["a"]}]},
    "host alias mapped": {"hostAliases": [{"ip": "::ffff:1.2.3.4", "hostnames": ["a"]}]},
    "host alias long": {"hostAliases": [{"ip": "2001:DB8:0:0::1", "hostnames": ["a"]}]},
    "nameserver": {"dnsConfig": {"nameservers": ["::ffff:1.2.3.4", "2001:DB8::1"]}},
    "pull secrets twice": {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}, {}]},
    "fractional memory": _container(
        resources={"limits": {"memory": "1500m", "ephemeral-storage": "100m"}, "requests": {"memory": "500m"}}
    ),
    "fractional overhead": {"overhead": {"memory": "100m"}, "runtimeClassName": "r"},
    "env twice": _container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    "env extended": _container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A):2"}]),
    "env itself": _container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)"}]),
    "env from": _container(
        env=[{"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "ports twice": _container(ports=[{"containerPort": 80}, {"containerPort": 80}]),
    "ports twice by name": _container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}]),
    "ports overlap": _container(ports=[{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]),
    "ports ambiguous": _container(
        ports=[{"containerPort": 80, "hostPort": 8080, "hostIP": "1.2.3.4"}, {"containerPort": 80, "hostPort": 8080}]
    ),
    "host address without port": _container(ports=[{"containerPort": 80, "hostIP": "1.2.3.4"}]),
    "port of two containers": {
        "containers": [
            {**_C, "ports": [{"containerPort": 80, "name": "a"}]},
            {**_C, "name": "d", "ports": [{"containerPort": 80}]},
        ]
    },
    "port name of two containers": {
        "containers": [
            {**_C, "ports": [{"containerPort": 80, "name": "a"}]},
            {**_C, "name": "d", "ports": [{"containerPort": 81, "name": "a"}]},
        ]
    },
    "negative grace period": {"terminationGracePeriodSeconds": -5},
    "two containers of one name": {"containers": [_C, _C]},
    "spread by hash": {"topologySpreadConstraints": [{**_SPREAD, "matchLabelKeys": ["a", "pod-template-hash"]}]},
    "spread by key twice": {"topologySpreadConstraints": [{**_SPREAD, "matchLabelKeys": ["x", "x"]}]},
    "spread by key of no name": {"topologySpreadConstraints": [{**_SPREAD, "matchLabelKeys": ["no such!"]}]},
    "spread keys without selector": {
        "topologySpreadConstraints": [{**_SPREAD, "labelSelector": None, "matchLabelKeys": ["x"]}]
    },
    "minDomains": {"topologySpreadConstraints": [{**_SPREAD, "minDomains": 2}]},
    "minDomains 0": {"topologySpreadConstraints": [{**_SPREAD, "minDomains": 0}]},
    "minDomains anyway": {
        "topologySpreadConstraints": [{**_SPREAD, "minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}]
    },
    "maxSkew 0": {"topologySpreadConstraints": [{**_SPREAD, "maxSkew": 0}]},
    "spread twice": {"topologySpreadConstraints": [_SPREAD, _SPREAD]},
    "spread policies": {
        "topologySpreadConstraints": [{**_SPREAD, "nodeAffinityPolicy": "No", "nodeTaintsPolicy": "No"}]
    },
    **{
        f"affinity keys {index}": {
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**_TERM, **term}]}}
        }
        for index, term in enumerate(
            (
                {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["a"]},
                {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]},
                {"labelSelector": {"matchLabels": {"a": "b"}}, "mismatchLabelKeys": ["y"]},
                {"matchLabelKeys": ["x"]},
                {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["no such!"]},
            )
        )
    },
    "probe bounds": _container(livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": 2}),
    "probe seconds": _container(
        livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": -1, "initialDelaySeconds": -1}
    ),
    "probe port": _container(livenessProbe={"httpGet": {"port": 0}}),
    "probe name": _container(readinessProbe={"httpGet": {"port": "no such name at all"}}),
    "probe grace": _container(readinessProbe={"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 5}),
    "hostNetwork ports": {**_container(ports=[{"containerPort": 80, "hostPort": 81}]), "hostNetwork": True},
    "tolerations": {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}, {"operator": "Equal"}]},
    "toleration seconds": {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]},
    "toleration comparison": {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]},
    "resources over limit": _container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    "extended without limit": _container(resources={"requests": {"example.com/gpu": "1"}}),
    "extended fraction": _container(resources={"limits": {"example.com/gpu": "1500m"}}),
    "hugepages": _container(resources={"limits": {"hugepages-2Mi": "3Mi"}}),
    "unknown resource": _container(resources={"limits": {"gpu": "1"}}),
    "pod resources": {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
    "os windows": {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}},
    "user 2^40": {"securityContext": {"runAsUser": 2**40, "fsGroup": -1}},
    "sysctl twice": {
        "securityContext": {"sysctls": [{"name": "kernel.a", "value": "1"}, {"name": "kernel.a", "value": "2"}]}
    },
    "subdomain": {"subdomain": "No", "hostname": "No"},
    "priority class": {"priorityClassName": "absent-class"},
    "negative deadline": {"activeDeadlineSeconds": 0},
    "gates": {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
    "node name and gates": {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
    "mount twice": {**_volume(emptyDir={}), **_container(volumeMounts=[{"name": "v", "mountPath": "/a"}] * 2)},
    "mount of nothing": _container(volumeMounts=[{"name": "absent", "mountPath": "/a"}]),
    "subPath": {
        **_volume(emptyDir={}),
        **_container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "../b"}]),
    },
    "sidecar": {"initContainers": [{**_C, "name": "s", "restartPolicy": "Always"}]},
    "init lifecycle": {"initContainers": [{**_C, "name": "s", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}]},
    "sleep": _container(lifecycle={"preStop": {"sleep": {"seconds": 50}}}),
    "env name": _container(env=[{"name": "a=b", "value": "1"}]),
    "env field": _container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]),
    "resize policy": _container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "No"}]),
    "ephemeral container": {"ephemeralContainers": [{"name": "e", "image": "i"}]},
    "claims": {"resourceClaims": [{"name": "a"}]},
    "dns policy": {"dnsPolicy": "None"},
    "image space": {"containers": [{"name": "c", "image": " i "}]},
    "image empty": {"containers": [{"name": "c", "image": ""}]},
    "no containers": {"containers": []},
}
"""Parts of a pod's spec."""
POD_ANNOTATIONS: Final = (
    *("scheduler.alpha.kubernetes.io/critical-pod", "security.alpha.kubernetes.io/sysctls"),
    *("security.alpha.kubernetes.io/unsafe-sysctls", "seccomp.security.alpha.kubernetes.io/pod"),
    *("container.seccomp.security.alpha.kubernetes.io/c", "container.apparmor.security.beta.kubernetes.io/c"),
    *("kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"),
)


def _pod(spec: Object, **metadata: Any) -> Object:
    return {"metadata": {"labels": {"a": "b"}, **metadata}, "spec": {**_container(), "restartPolicy": "Always", **spec}}


def _owners(pod: Object) -> Iterator[Object]:
    """Yield an object of every kind with a pod template, and the pod."""
    once = {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    selector = {"matchLabels": {"a": "b"}}
    named = {"name": "w"}
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": {**pod["metadata"], **named}, "spec": pod["spec"]}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": named,
        "spec": {"selector": selector, "template": pod},
    }
    yield {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": named,
        "spec": {"selector": selector, "template": pod, "serviceName": "s"},
    }  # fmt: skip
    yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": named, "spec": {"template": once}}
    yield {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": named,
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": once}}},
    }  # fmt: skip
    for kind in ("DaemonSet", "ReplicaSet"):
        yield {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": named,
            "spec": {"selector": selector, "template": pod},
        }
    yield {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": named,
        "spec": {"selector": {"a": "b"}, "template": pod},
    }
    yield {"apiVersion": "v1", "kind": "PodTemplate", "metadata": named, "template": pod}


def _object(
    kind: str, api_version: str = "v1", annotations: Object | None = None, name: str = "w", **fields: Any
) -> Object:
    return {
        "apiVersion": api_version, "kind": kind, "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
        **fields,
    }  # fmt: skip


def _service(annotations: Object | None = None, **spec: Any) -> Object:
    return _object("Service", annotations=annotations, spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def _volume_object(**spec: Any) -> Object:
    plain = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    if any(name not in {"persistentVolumeReclaimPolicy", "nodeAffinity", "capacity"} for name in spec):
        del plain["hostPath"]
    return _object("PersistentVolume", spec={**plain, **spec})


def _slice(addresses: list[str], type_: str = "IPv4", **fields: Any) -> Object:
    return _object(
        "EndpointSlice", "discovery.k8s.io/v1", addressType=type_, endpoints=[{"addresses": addresses}], **fields
    )


_JOB: Final[Object] = {"template": {"spec": {**_container(), "restartPolicy": "Never"}}}
_BETA_ZONES: Final = [{"matchLabelExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "values": ["a"]}]}]
_BETA_NODES: Final = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}]}
}
_INGRESS: Final[Object] = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
_AUTOSCALER: Final[Object] = {
    "maxReplicas": 2,
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "n"},
}
OBJECTS: Final[dict[str, Object]] = {
    "topology hints": _service({"service.kubernetes.io/topology-aware-hints": "auto"}),
    "topology mode": _service({"service.kubernetes.io/topology-mode": "auto"}),
    "prefer close": _service(trafficDistribution="PreferClose"),
    "prefer same zone": _service(trafficDistribution="PreferSameZone"),
    "hints and distribution": _service({"service.kubernetes.io/topology-mode": "auto"}, trafficDistribution="PreferClose"),
    "distribution": _service(trafficDistribution="No"),
    "external name": _service(type="ExternalName", externalName="a.b", externalIPs=["1.2.3.4"]),
    "external name affinity": _service(type="ExternalName", externalName="a.b", sessionAffinity="ClientIP"),
    "external name policy": _service(type="ExternalName", externalName="a.b", internalTrafficPolicy="Local"),
    "external addresses": _service(externalIPs=["01.2.3.4", "::ffff:1.2.3.4"]),
    "external address": _service(externalIPs=["2001:DB8::1"]),
    "balancer address": _service(type="LoadBalancer", loadBalancerIP="2001:DB8::1", loadBalancerSourceRanges=["10.0.0.1/8", " 10.0.0.0/8"]),
    "headless affinity": _service(clusterIP="None", sessionAffinity="ClientIP"),
    "headless balancer": _service(clusterIP="None", type="LoadBalancer"),
    "headless ports": _service(clusterIP="None", internalTrafficPolicy="Local"),
    "cluster address zeros": _service(clusterIP="010.96.0.77"),
    "local policy": _service(externalTrafficPolicy="Local"),
    "allocate ports": _service(allocateLoadBalancerNodePorts=False),
    "port name twice": _service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]),
    "port twice": _service(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]),
    "target port": _service(ports=[{"port": 80, "targetPort": 0}]),
    "no ports": _service(ports=[]),
    "session timeout": _service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
    "no session": _service(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}}),
    "slice zeros": _slice(["01.2.3.4"]),
    "slice mapped": _slice(["::ffff:1.2.3.4"], "IPv6"),
    "slice upper": _slice(["2001:DB8::1"], "IPv6"),
    "slice name": _slice(["a.b"], "FQDN"),
    "endpoints": _object("Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]),
    "endpoints zeros": _object("Endpoints", subsets=[{"addresses": [{"ip": "::ffff:1.2.3.4"}], "ports": [{"port": 80}]}]),
    "ingress annotation": _object("Ingress", "networking.k8s.io/v1", {"kubernetes.io/ingress.class": "n"}, spec=_INGRESS),
    "ingress class and annotation": _object(
        "Ingress", "networking.k8s.io/v1", {"kubernetes.io/ingress.class": "n"}, spec={**_INGRESS, "ingressClassName": "n"}
    ),
    "ingress host": _object("Ingress", "networking.k8s.io/v1", spec={"rules": [{"host": "*.*.a"}]}),
    "ingress path": _object(
        "Ingress", "networking.k8s.io/v1",
        spec={"rules": [{"http": {"paths": [{"path": "a//b", "pathType": "Exact", "backend": _INGRESS["defaultBackend"]}]}}]},
    ),
    "ingress wildcard": _object("Ingress", "networking.k8s.io/v1", spec={"tls": [{"hosts": ["a.*"], "secretName": "No!"}]}),
    "policy cidr": _object(
        "NetworkPolicy", "networking.k8s.io/v1",
        spec={
            "podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.1/8", "except": ["10.1.0.1/16"]}}]}],
            "egress": [{"to": [{"ipBlock": {"cidr": "2001:DB8::/32"}}]}],
        },
    ),
    "policy port": _object(
        "NetworkPolicy", "networking.k8s.io/v1",
        spec={"podSelector": {}, "egress": [{"ports": [{"port": 80, "endPort": 70}, {"port": "No such", "protocol": "X"}]}]},
    ),
    "empty selector": _object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "selector": {}}),
    "no selector": _object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1}),
    "both": _object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1, "selector": {}}),
    "percentage": _object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "101%", "selector": {}}),
    "recycle": _volume_object(persistentVolumeReclaimPolicy="Recycle"),
    "volume node labels": _volume_object(nodeAffinity=_BETA_NODES),
    **{
        f"volume {name}": _volume_object(**{name: source})
        for name, source in {
            "glusterfs": {"endpoints": "e", "path": "p"},
            "scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s", "namespace": "n"}},
            "photonPersistentDisk": {"pdID": "p"},
            "quobyte": {"registry": "r:1", "volume": "v"},
            "storageos": {"volumeName": "v", "volumeNamespace": "n"},
            "flocker": {"datasetName": "d"},
            "cephfs": {"monitors": ["m"]},
            "rbd": {"monitors": ["m"], "image": "i"},
            "azureFile": {"secretName": "s", "shareName": "s"},
            "awsElasticBlockStore": {"volumeID": "v"},
        }.items()
    },
    "volume class annotation": _object(
        "PersistentVolume", annotations={"volume.beta.kubernetes.io/storage-class": "a"}, spec=_volume_object()["spec"]
    ),
    "volume mount options annotation": _object(
        "PersistentVolume", annotations={"volume.beta.kubernetes.io/mount-options": "a"}, spec=_volume_object()["spec"]
    ),
    "volume fraction": _volume_object(capacity={"storage": "1500m"}),
    "claim fraction": _object(
        "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}
    ),
    "claim class annotation": _object(
        "PersistentVolumeClaim", annotations={"volume.beta.kubernetes.io/storage-class": "a"},
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    "claim modes": _object(
        "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}}}
    ),
    "class topology": _object("StorageClass", "storage.k8s.io/v1", provisioner="p", allowedTopologies=_BETA_ZONES),
    "class annotation": _object("StorageClass", "storage.k8s.io/v1", {"storageclass.beta.kubernetes.io/is-default-class": "true"}, provisioner="p"),
    "storage capacity labels": _object(
        "CSIStorageCapacity", "storage.k8s.io/v1", storageClassName="a",
        nodeTopology={"matchLabels": {"beta.kubernetes.io/os": "x"}, "matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]},
    ),
    "runtime class labels": _object("RuntimeClass", "node.k8s.io/v1", handler="h", scheduling={"nodeSelector": {"beta.kubernetes.io/arch": "x"}}),
    "runtime class fraction": _object("RuntimeClass", "node.k8s.io/v1", handler="h", overhead={"podFixed": {"memory": "1500m"}}),
    "attributes": _object("PriorityClass", "scheduling.k8s.io/v1", value=2_000_000_000),
    "reserved name": _object("PriorityClass", "scheduling.k8s.io/v1", name="system-x", value=1),
    "node labels": {**_object("Node"), "metadata": {"name": "w", "labels": {"beta.kubernetes.io/os": "x"}}},
    "node externalID": _object("Node", spec={"externalID": "x"}),
    "node config": _object("Node", spec={"configSource": {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}}}),
    "node podCIDR": _object("Node", spec={"podCIDR": "10.0.0.1/8"}),
    "schedule zone": _object("CronJob", "batch/v1", spec={"schedule": "TZ=UTC 0 0 * * *", "jobTemplate": {"spec": _JOB}}),
    "schedule cron zone": _object("CronJob", "batch/v1", spec={"schedule": "CRON_TZ=UTC 0 0 * * *", "jobTemplate": {"spec": _JOB}}),
    "long cron name": _object("CronJob", "batch/v1", name="a" * 52, spec={"schedule": "0 0 * * *", "jobTemplate": {"spec": _JOB}}),
    "cron name with dots": _object("CronJob", "batch/v1", name="a.b", spec={"schedule": "0 0 * * *", "jobTemplate": {"spec": _JOB}}),
    "cron never": _object("CronJob", "batch/v1", spec={"schedule": "0 0 31 2 *", "jobTemplate": {"spec": _JOB}}),
    "cron zone": _object("CronJob", "batch/v1", spec={"schedule": "0 0 * * *", "timeZone": "No/Where", "jobTemplate": {"spec": _JOB}}),
    "indexed job": _object("Job", "batch/v1", spec={**_JOB, "completionMode": "Indexed", "completions": 200_000, "parallelism": 20_000}),
    "large job": _object("Job", "batch/v1", spec={**_JOB, "completionMode": "Indexed", "completions": 200_000, "parallelism": 5}),
    "job backoff": _object("Job", "batch/v1", spec={**_JOB, "backoffLimitPerIndex": 1}),
    "job name": _object("Job", "batch/v1", name="a.b", spec=_JOB),
    "long job": _object("Job", "batch/v1", name="a" * 64, spec={**_JOB, "completionMode": "Indexed", "completions": 1}),
    "job manager": _object("Job", "batch/v1", spec={**_JOB, "managedBy": "no"}),
    "job policy": _object("Job", "batch/v1", spec={**_JOB, "podFailurePolicy": {"rules": []}}),
    "deployment history": _object(
        "Deployment", "apps/v1",
        spec={"selector": {"matchLabels": {"a": "b"}}, "template": _pod({}), "revisionHistoryLimit": -1, "minReadySeconds": 700},
    ),
    "deployment name": _object("Deployment", "apps/v1", name="a.b", spec={"selector": {"matchLabels": {"a": "b"}}, "template": _pod({})}),
    "long deployment": _object("Deployment", "apps/v1", name="a" * 64, spec={"selector": {"matchLabels": {"a": "b"}}, "template": _pod({})}),
    "replica set name": _object("ReplicaSet", "apps/v1", name="a.b", spec={"selector": {"matchLabels": {"a": "b"}}, "template": _pod({})}),
    "stateful set name": _object(
        "StatefulSet", "apps/v1", name="a.b", spec={"serviceName": "No!", "selector": {"matchLabels": {"a": "b"}}, "template": _pod({})}
    ),
    "stateful set history": _object(
        "StatefulSet", "apps/v1",
        spec={"serviceName": "s", "revisionHistoryLimit": -1, "selector": {"matchLabels": {"a": "b"}}, "template": _pod({})},
    ),
    "stateful set claim": _object(
        "StatefulSet", "apps/v1",
        spec={
            "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": _pod({}),
            "volumeClaimTemplates": [{"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}}],
        },
    ),
    "stateful set retention": _object(
        "StatefulSet", "apps/v1",
        spec={
            "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": _pod({}),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "No", "whenScaled": "Retain"}, "podManagementPolicy": "No",
        },
    ),
    "daemon set pods": _object("Pod", name="a.b", spec=_container()),
    "config map name": _object("ConfigMap", name="a.b", data={"a/b": "c"}),
    "config map large": _object("ConfigMap", data={"a": "x" * 1_048_577}),
    "config map key": _object("ConfigMap", data={"..a": "x", "a" * 254: "y", "b": "z"}, binaryData={"b": "eA=="}),
    "secret data": _object("Secret", data={"a": "not base64!"}),
    "secret types": _object("Secret", type="kubernetes.io/tls", data={}),
    "secret docker": _object("Secret", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "bm90IGpzb24="}),
    "secret account": _object("Secret", type="kubernetes.io/service-account-token"),
    "account secrets": _object(
        "ServiceAccount", annotations={"kubernetes.io/enforce-mountable-secrets": "true"}, secrets=[{"name": "a"}]
    ),
    "quota": _object("ResourceQuota", spec={"hard": {"cpu": "-1", "nothing": "1", "a/b/c": "1"}, "scopes": ["No"]}),
    "limit range": _object("LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}),
    "limit range fraction": _object("LimitRange", spec={"limits": [{"type": "Container", "max": {"memory": "1500m"}}]}),
    "autoscaler": _object("HorizontalPodAutoscaler", "autoscaling/v2", spec={**_AUTOSCALER, "minReplicas": 0}),
    "autoscaler metrics": _object(
        "HorizontalPodAutoscaler", "autoscaling/v2",
        spec={**_AUTOSCALER, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}}]},
    ),
    "autoscaler behavior": _object(
        "HorizontalPodAutoscaler", "autoscaling/v2",
        spec={**_AUTOSCALER, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 4000, "policies": [{"type": "No", "value": 0, "periodSeconds": 2000}]}}},
    ),
    "autoscaler v1": _object("HorizontalPodAutoscaler", "autoscaling/v1", spec={**_AUTOSCALER, "targetCPUUtilizationPercentage": 0}),
    "lease": _object("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
    "lease strategy": _object("Lease", "coordination.k8s.io/v1", spec={"strategy": "OldestEmulationVersion", "preferredHolder": "a"}),
    "role": _object("Role", "rbac.authorization.k8s.io/v1", rules=[{"verbs": [], "nonResourceURLs": ["/a"]}, {"verbs": ["get"]}]),
    "binding": _object(
        "RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"apiGroup": "a", "kind": "No", "name": "a"}, subjects=[{"kind": "No", "name": ""}]
    ),
    "namespace": _object("Namespace", name="a.b"),
    "namespace finalizers": _object("Namespace", spec={"finalizers": ["no such!"]}),
    "namespace long": _object("Namespace", name="a" * 64),
    "certificate": _object("CertificateSigningRequest", "certificates.k8s.io/v1", spec={"request": "eA==", "signerName": "a", "usages": ["no"]}),
    "ip address": _object("IPAddress", "networking.k8s.io/v1", name="2001:DB8::1", spec={"parentRef": {"resource": "a", "name": "b"}}),
    "service cidr": _object("ServiceCIDR", "networking.k8s.io/v1", spec={"cidrs": ["10.0.0.1/8"]}),
    "csi driver": _object("CSIDriver", "storage.k8s.io/v1", name="No!", spec={"fsGroupPolicy": "No", "requiresRepublish": True}),
    "claim request": _object(
        "ResourceClaim", "resource.k8s.io/v1",
        spec={"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": 0, "selectors": [{"cel": {"expression": "device.nothing"}}]}}]}},
    ),
    "device class": _object("DeviceClass", "resource.k8s.io/v1", spec={"selectors": [{"cel": {"expression": "1 + 'a'"}}]}),
    "admission policy": _object(
        "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", name="w.example.com",
        spec={
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]},
            "validations": [{"expression": "object.spec.replicas > 'x'"}, {"expression": "object.spec.nothing == 1"}],
        },
    ),
    "webhook": _object(
        "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1",
        webhooks=[{"name": "a", "sideEffects": "Some", "admissionReviewVersions": ["v9"], "timeoutSeconds": 50, "clientConfig": {"url": "http://a"}}],
    ),
    "event": _object("Event", involvedObject={"kind": "Pod", "name": "a", "namespace": "other"}),
}  # fmt: skip


def warned_requests() -> Iterator[Request]:
    """Yield dry runs of creates."""
    served = targets()
    pods = {name: _pod(spec) for name, spec in POD_SPECS.items()}
    pods |= {f"annotation {name}": _pod({}, annotations={name: "runtime/default"}) for name in POD_ANNOTATIONS}
    named = [(f"{obj['kind']}: {name}", obj) for name, pod in pods.items() for obj in _owners(pod)]
    for name, obj in [*named, *((f"{obj['kind']}: {name}", obj) for name, obj in OBJECTS.items())]:
        kind = served[obj["apiVersion"], obj["kind"]]
        yield request(f"warned: {name}", "POST", kind.root, within(obj, kind), dryRun="All", fieldManager="corpus")
