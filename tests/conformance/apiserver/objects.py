"""The objects of the suite: small, valid on every cluster, and harmless there."""

from typing import Any

from tests.support.rest import Object


def a_config_map(name: str = "cm", labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"labels": labels} if labels else {}), **metadata},
        "data": {"k": "v"},
    }


def a_deployment(name: str = "web", **spec: Any) -> Object:
    """Return a Deployment; paused, so that a real cluster starts nothing."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "paused": True,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            **spec,
        },
    }


def a_pod(name: str = "p", **spec: Any) -> Object:
    """Return a pod that no scheduler of a real cluster picks up."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "nginx:1.25"}], **spec},
    }


def a_service(name: str = "svc", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **spec},
    }


TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod()["spec"]}
SELECTOR: Object = {"matchLabels": {"a": "b"}}
JOB: Object = {"suspend": True, "template": {"spec": {**a_pod()["spec"], "restartPolicy": "Never"}}}


def a_spec(plural: str) -> Object:
    """Return the spec of a kind's smallest object, one for which a real cluster starts nothing."""
    match plural:
        case "replicasets":
            return {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}
        case "statefulsets":
            return {"replicas": 0, "serviceName": "x", "selector": SELECTOR, "template": TEMPLATE}
        case "daemonsets":
            spec = {**TEMPLATE["spec"], "nodeSelector": {"no": "node"}}
            return {"selector": SELECTOR, "template": {**TEMPLATE, "spec": spec}}
        case "jobs":
            return JOB
        case "cronjobs":
            return {"suspend": True, "schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}}
        case "poddisruptionbudgets":
            return {"minAvailable": 1, "selector": SELECTOR}
        case "autoscaling/v2/horizontalpodautoscalers":
            return {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"}}
        case "persistentvolumeclaims":
            amount = {"requests": {"storage": "1Gi"}}
            return {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": amount}
        case "ingresses":
            return {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}
        case "pods" | "deployments" | "services":
            return {"pods": a_pod, "deployments": a_deployment, "services": a_service}[plural]()["spec"]
    return {}


WIDGET_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100},
                "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                "replicas": {"type": "integer"},
                "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
                "nullable": {"type": "string", "nullable": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}


def a_definition(
    group: str, plural: str = "widgets", kind: str = "Widget", scope: str = "Namespaced", **version: Any
) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "shortNames": [plural[:3]]},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}, **version}
            ],
        },
    }


def a_widget(group: str, name: str = "w", version: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


def owned_by(owner: Object, api_version: str, kind: str, **more: Any) -> list[Object]:
    """Return ownerReferences to one owner."""
    metadata = owner["metadata"]
    return [{"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}]
