"""A patch of a controller of this process is parsed and checked in less steps than a user's, with the same result."""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_OBJECTS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import PatchType
from federation.client.local import LocalClient

PLACED = [{"controller": "scheduler", "placement": [{"cluster": "east"}]}]
TEMPLATE = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"a": "b"}}}
FEDERATED: Object = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "FederatedObject",
    "metadata": {"labels": {"app": "web"}, "annotations": {"kept": "yes", "removed": "no"}, "finalizers": ["a/b"]},
    "spec": {"template": TEMPLATE, "placements": PLACED},
}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}
CONDITION = {"type": "Propagated", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
PATCHES: dict[str, tuple[Resource, Object, str, Object]] = {
    "a template": (FEDERATED_OBJECTS, FEDERATED, "", {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}),
    "placements": (FEDERATED_OBJECTS, FEDERATED, "", {"spec": {"placements": []}}),
    "a removed part": (FEDERATED_OBJECTS, FEDERATED, "", {"spec": {"placements": None}}),
    "annotations": (FEDERATED_OBJECTS, FEDERATED, "", {"metadata": {"annotations": {"removed": None, "new": "1"}}}),
    "finalizers": (FEDERATED_OBJECTS, FEDERATED, "", {"metadata": {"finalizers": []}}),
    "an unknown field": (FEDERATED_OBJECTS, FEDERATED, "", {"spec": {"unknown": 1}, "metadata": {"unknown": 1}}),
    "nothing": (FEDERATED_OBJECTS, FEDERATED, "", {"metadata": {"labels": {"app": "web"}}}),
    "a status": (FEDERATED_OBJECTS, FEDERATED, "status", {"status": {"conditions": [CONDITION]}}),
    "a status beside a spec": (FEDERATED_OBJECTS, FEDERATED, "status", {"spec": None, "status": {"conditions": []}}),
    "a Deployment's status": (DEPLOYMENTS, DEPLOYMENT, "status", {"status": {"readyReplicas": 2, "replicas": 3}}),
}


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    registry = Registry(MemoryStore(), clock=ManualClock())
    running = asyncio.create_task(registry.run())
    await registry.install_crds(crd_manifests())
    yield registry
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("case", PATCHES)
async def test_a_controllers_patch_stores_what_a_users_patch_stores(registry: Registry, case: str) -> None:
    resource, manifest, subresource, patch = PATCHES[case]
    controller = LocalClient(registry)
    user = LocalClient(registry, requester=lambda: {"username": "admin", "groups": ["system:masters"]})
    results = []
    for name, client in (("controller", controller), ("user", user)):
        obj = copy.deepcopy(manifest)
        obj["metadata"]["name"] = name
        await user.create(resource, {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}, field_manager="m")
        for _ in range(2):  # The second time, the patch changes nothing.
            await client.patch(
                resource,
                name,
                patch,
                patch_type=PatchType.MERGE,
                namespace="default",
                subresource=subresource,
                field_manager="writer",
            )
        results.append(_comparable(await client.get(resource, name, "default")))
    assert results[0] == results[1]


async def test_a_controllers_patch_is_still_checked_where_it_changes_something(registry: Registry) -> None:
    controller = LocalClient(registry)
    await controller.create(FEDERATED_OBJECTS, {**FEDERATED, "metadata": {"name": "web", "namespace": "default"}})
    patch: dict[str, Any] = {"spec": {"placements": [{"controller": 5}]}}
    with pytest.raises(Invalid, match=r"spec\.placements\[0\]"):
        await controller.patch(FEDERATED_OBJECTS, "web", patch, patch_type=PatchType.MERGE, namespace="default")


def _comparable(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("name", "uid", "resourceVersion")}
    return {**obj, "metadata": metadata}
