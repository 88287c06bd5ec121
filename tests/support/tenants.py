"""The host's API in process, with users who hold the default roles in the namespace `default`: for attack tests.

`tenants(directory)` serves a registry with our CRDs, RBAC and admission over ASGI, without sockets. Users are client
certificates: `viewer`, `editor`, `administrator` hold view, edit and admin; `root` is in system:masters. With a
`registry` of a running world, what they write is what the world's controllers see.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx

from federation.admission.federatedobjects import FederatedObjectAdmission
from federation.api.crds import crd_manifests
from federation.api.resources import CORE_GROUP, FEDERATED_OBJECTS
from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, Decision, User
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.interface import Store
from federation.apiserver.store.memory import MemoryStore
from federation.hosting.roles import HOST_RBAC
from federation.web.objectlist import ObjectListView
from tests.support.apiserver import Parts, build

ROLES = {"viewer": "view", "editor": "edit", "administrator": "admin"}
MERGE = {"content-type": "application/merge-patch+json"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OURS = f"/apis/{CORE_GROUP}/v1alpha1"
FEDERATED = f"{OURS}/namespaces/default/federatedobjects"
CLUSTER_FEDERATED = f"{OURS}/clusterfederatedobjects"


class Tenants:
    """A host and clients of its users."""

    def __init__(self, parts: Parts, stack: AsyncExitStack) -> None:
        self.parts = parts
        self._stack = stack

    async def client(self, name: str, *groups: str, **headers: str) -> httpx.AsyncClient:
        """Return a client of a user, "" for one without a certificate."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["state"] = {"peer": Peer(name, groups) if name else None}
            await self.parts.app(scope, receive, send)

        transport = httpx.ASGITransport(app=app)
        client = httpx.AsyncClient(transport=transport, base_url="https://api", headers=headers)
        return await self._stack.enter_async_context(client)

    async def root(self) -> httpx.AsyncClient:
        """Return a client of a member of system:masters."""
        return await self.client("root", "system:masters")

    async def bind(self, user: str, role: str, *, namespace: str = "default") -> None:
        """Give a user a ClusterRole in a namespace ("": everywhere) and wait until the authorizer knows it."""
        scope = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
        body = {"metadata": {"name": f"{user}-{role}"}, "roleRef": reference, "subjects": [subject]}
        answer = await (await self.root()).post(scope, json=body)
        assert answer.status_code == 201, answer.text
        key = (namespace, f"{user}-{role}")
        await self.until(lambda: key in self.parts.authorizer._bindings)  # no public view of the cache

    async def grant(self, user: str, *rules: Object, namespace: str = "default") -> None:
        """Give a user rules through a new ClusterRole."""
        name = f"rules-of-{user}"
        answer = await (await self.root()).post(
            f"{RBAC}/clusterroles", json={"metadata": {"name": name}, "rules": list(rules)}
        )
        assert answer.status_code == 201, answer.text
        await self.until(lambda: ("", name) in self.parts.authorizer._roles)  # as above
        await self.bind(user, name, namespace=namespace)

    def decide(self, user: str, attributes: Attributes) -> Decision:
        """Return the authorizer's decision."""
        return self.parts.authorizer.authorize(User(user, (AUTHENTICATED,)), attributes)

    async def until(self, look: Any) -> None:
        """Return once the check is true; for effects that arrive through a watch."""
        async with asyncio.timeout(60):
            while not look():  # noqa: ASYNC110  # the state changes in the product, which has no event for tests
                await asyncio.sleep(0)


def rule(verbs: str, resources: str, group: str = CORE_GROUP) -> Object:
    """Return a rule of a role; verbs and resources are comma lists."""
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(",")}


def admitted_by_hand(obj: Object, old: Object | None = None) -> Object:
    """Return a federated object as admission lets a user create it, or change it from `old`."""
    metadata = obj["metadata"]
    request = AdmissionRequest(
        uid="u",
        operation=CREATE if old is None else UPDATE,
        resource=FEDERATED_OBJECTS,
        versions=("v1alpha1",),
        subresource="",
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        user={"username": "root"},
        dry_run=False,
        obj=deepcopy(obj),
        old=old,
        namespace_labels={},
    )
    return FederatedObjectAdmission(lambda *_: None).mutate(request)


def federated(template: Object, name: str, *clusters: str, **annotations: str) -> Object:
    """Return a hand-written federated object with an empty pipeline, as an attacker posts it."""
    namespace = template["metadata"].get("namespace")
    return {
        "apiVersion": f"{CORE_GROUP}/v1alpha1",
        "kind": "FederatedObject" if namespace else "ClusterFederatedObject",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "annotations": {"kubeadmiral.io/pending-controllers": "[]", **annotations},
        },
        "spec": {
            "template": template,
            "placements": [
                {
                    "controller": "kubeadmiral.io/global-scheduler",
                    "placement": [{"cluster": cluster} for cluster in clusters or ("east",)],
                }
            ],
        },
    }


@asynccontextmanager
async def tenants(
    directory: Path,
    registry: Registry | None = None,
    *,
    store: Store | None = None,
    listed: ObjectListView | None = None,
) -> AsyncIterator[Tenants]:
    """Serve a registry, by default an empty one with our CRDs on `store`; with `listed` also the list of objects."""
    store = store or MemoryStore()
    parts = build(directory, store, registry=registry, listed=listed)
    tasks = []
    if registry is None:
        await parts.registry.install_crds(crd_manifests())
        tasks.append(asyncio.create_task(parts.registry.run()))
    await ensure_default_rbac(parts.registry, HOST_RBAC)
    tasks.append(asyncio.create_task(parts.authorizer.run()))
    await parts.authorizer.wait_synced()
    try:
        async with AsyncExitStack() as stack:
            host = Tenants(parts, stack)
            for user, role in ROLES.items():
                await host.bind(user, role)
            yield host
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.close()
