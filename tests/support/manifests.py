"""Builders for the objects that users apply: Deployments, policies that divide them, overrides."""

from collections.abc import Mapping
from typing import Any

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import Object


def a_deployment(name: str, replicas: int = 3, **labels: str) -> Object:
    """Return a Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name, **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    }


def a_policy(weights: Mapping[str, int], *, name: str = "divide", **spec: Any) -> Object:
    """Return a PropagationPolicy that divides every Deployment of the namespace by weight."""
    return {
        "apiVersion": PROPAGATION_POLICIES.api_version,
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "schedulingMode": "Divide",
            "placement": [{"cluster": c, "preferences": {"weight": weight}} for c, weight in weights.items()],
            **spec,
        },
    }


def an_override(cluster: str, path: str, value: Any, *, name: str = "special") -> Object:
    """Return an OverridePolicy that sets one field of every Deployment in one cluster."""
    return {
        "apiVersion": OVERRIDE_POLICIES.api_version,
        "kind": "OverridePolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [
                {
                    "targetClusters": {"clusters": [cluster]},
                    "overriders": {"jsonpatch": [{"path": path, "operator": "replace", "value": value}]},
                }
            ],
        },
    }
