"""Triggers of KubeFed's federated objects, and their wiring; the steps are in `reconcile.py`.

Besides its own changes, a federated object is reconciled when its ReplicaSchedulingPreference, the FederatedNamespace
that it is in, one of its policies or the FederatedObject of its native object changes.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from federation.api import names
from federation.api.kubefedkinds import (
    FEDERATED_KINDS,
    FEDERATED_NAMESPACES,
    REPLICA_PREFERENCES,
    TYPES_GROUP,
)
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.features.kubefed.reconcile import FederatedKey, Reconciler
from federation.runtime.controller import Controller
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WORKERS = 3
_TRIGGERS = Triggers(deletion=False, status=lambda federated: federated.get("status"))
_POLICIES = (PROPAGATION_POLICIES, OVERRIDE_POLICIES, CLUSTER_PROPAGATION_POLICIES, CLUSTER_OVERRIDE_POLICIES)
_KIND_OF = {(each.target.group, each.target.kind): name for name, each in FEDERATED_KINDS.items()}


class KubeFedController:
    """Runs KubeFed's kinds. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        informers = host.informers
        self._objects = host.objects
        self._caches = {name: informers.for_resource(kind.resource) for name, kind in FEDERATED_KINDS.items()}
        self._preferences = informers.for_resource(REPLICA_PREFERENCES)
        self._policies = {resource: informers.for_resource(resource) for resource in _POLICIES}
        reconciler = Reconciler(host, self._caches, self._preferences, self._policies[PROPAGATION_POLICIES])
        self.controller: Controller[FederatedKey] = Controller(
            "kubefed", reconciler.reconcile, workers=_WORKERS, clock=host.clock, resync=self._keys
        )
        for name, cache in self._caches.items():
            cache.add_handler(partial(self._on_federated, name))
        self._preferences.add_handler(self._on_preference)
        for policies in self._policies.values():
            policies.add_handler(self._on_policy)
        host.objects.subscribe(self._on_propagated, _TRIGGERS, is_late=True)

    async def run(self) -> None:
        """Start the workers once every cache is synced: a missing preference must not look like a deleted one."""
        for cache in (*self._caches.values(), self._preferences, *self._policies.values()):
            await cache.wait_synced()
        await self._objects.wait_synced()
        await self.controller.run()

    def _keys(self, namespace: str = "") -> Iterator[FederatedKey]:
        for name, cache in self._caches.items():
            for federated in cache.list(namespace):
                yield _key(name, federated)

    def _on_federated(self, kind: str, old: Object | None, new: Object | None) -> None:
        if kind == FEDERATED_NAMESPACES.kind and (new is None or old is None or _facts(old) != _facts(new)):
            for key in self._keys((new or old or {})["metadata"]["namespace"]):
                self.controller.enqueue(key)
        elif new is not None and (old is None or _facts(old) != _facts(new)):
            self.controller.enqueue(_key(kind, new))

    def _on_preference(self, old: Object | None, new: Object | None) -> None:
        for preference in (old, new):
            if preference is not None:
                self.controller.enqueue(_key(preference["spec"]["targetKind"], preference))

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _facts(old) == _facts(new):
            return
        policy = new or old or {}
        owner = controller_of(policy)
        if owner is not None and str(owner.get("apiVersion")).startswith(f"{TYPES_GROUP}/"):
            self._enqueue_known(FederatedKey(owner["kind"], policy["metadata"].get("namespace", ""), owner["name"]))

    def _on_propagated(self, old: Object | None, new: Object | None) -> None:
        template = ((new or old or {}).get("spec") or {}).get("template") or {}
        group = str(template.get("apiVersion", "")).rpartition("/")[0]
        kind = _KIND_OF.get((group, str(template.get("kind", ""))))
        metadata = template.get("metadata") or {}
        if kind is not None and "name" in metadata:
            namespace = metadata["name"] if kind == FEDERATED_NAMESPACES.kind else metadata.get("namespace", "")
            self._enqueue_known(FederatedKey(kind, namespace, metadata["name"]))

    def _enqueue_known(self, key: FederatedKey) -> None:
        cache = self._caches.get(key.kind)
        if cache is not None and cache.get(key.namespace, key.name) is not None:
            self.controller.enqueue(key)


def _key(kind: str, obj: Object) -> FederatedKey:
    metadata = obj["metadata"]
    return FederatedKey(kind, metadata.get("namespace", ""), metadata["name"])


def _facts(obj: Object) -> tuple[Any, ...]:
    """Return what decides about the derived objects; a status is none of it."""
    metadata = obj["metadata"]
    orphan = (metadata.get("annotations") or {}).get(names.KUBEFED_ORPHAN)
    return metadata.get("uid"), metadata.get("generation"), orphan, metadata.get("ownerReferences")
