"""Wiring of the override controller: which events of federated objects, policies and clusters concern which object.

It follows the override policies, compiles each once (`planning/overrides/bindings.py`), and finds the objects that a
changed policy is for by index, not by looking at all of them.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    Object,
)
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.override.reconcile import Reconciler
from federation.planning.fedindex import policies_named, type_of_template
from federation.planning.overrides.bindings import Bindings, selected_types, subject_of_federated
from federation.planning.overrides.storage import stored_overrides
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers

_BY_POLICY = "override/policy"
_BY_TYPE = "override/type"


@dataclass(frozen=True, slots=True)
class OverrideOptions:
    """Limits of the override controller."""

    workers: int = 8
    """Federated objects that are worked on at the same time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class OverrideController:
    """Keeps the overrides of every federated object up to date. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        recorder: Recorder,
        *,
        clock: Clock,
        options: OverrideOptions | None = None,
    ) -> None:
        chosen = options or OverrideOptions()
        self._types = types
        self._recorder = recorder
        self._bindings = Bindings()
        self._namespaced = informers.for_resource(FEDERATED_OBJECTS)
        self._cluster_scoped = informers.for_resource(CLUSTER_FEDERATED_OBJECTS)
        self._policies = [informers.for_resource(OVERRIDE_POLICIES), informers.for_resource(CLUSTER_OVERRIDE_POLICIES)]
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        for informer in (self._namespaced, self._cluster_scoped):
            informer.add_index(_BY_POLICY, _named_policies)
            informer.add_index(_BY_TYPE, type_of_template)
        reconciler = Reconciler(client, self, self._bindings, recorder, clock=clock)
        self.controller: Controller[Key] = Controller(
            "override",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._all_keys,
        )

    async def run(self) -> None:
        """Follow policies, clusters and federated objects, and work once all of them have arrived."""
        for informer in self._policies:
            informer.add_handler(self._on_policy)
        self._clusters.add_handler(self._on_cluster)
        for informer in (self._namespaced, self._cluster_scoped):
            informer.add_handler(self._on_federated)
        # A policy or cluster that has not arrived yet must not look like one that does not exist.
        await asyncio.gather(
            self._types.wait_synced(),
            *(
                informer.wait_synced()
                for informer in [*self._policies, self._clusters, self._namespaced, self._cluster_scoped]
            ),
        )
        await self.controller.run()

    # -- what the reconciler reads

    def federated(self, key: Key) -> Object | None:
        """Return the cached federated object."""
        return (self._namespaced if key.namespace else self._cluster_scoped).get(*key)

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the federated type of the object's template."""
        return self._types.for_federated(federated)

    def cluster(self, name: str) -> Object | None:
        """Return the cached FederatedCluster."""
        return self._clusters.get("", name)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _is_relevant_change(old, new)):
            self.controller.enqueue(key_of(new))

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        if new is not None:
            if problem := self._bindings.put(new):
                self._recorder.event(new, "Warning", names.EVENT_MATCH_OVERRIDE_POLICY_FAILED, problem)
        elif old is not None:
            self._bindings.drop(old)
        policy = new if new is not None else old or {}
        for federated in self._concerned(policy, selected_types((old, new))):
            self.controller.enqueue(key_of(federated))

    def _concerned(self, policy: Object, types: set[tuple[str, str]]) -> Iterable[Object]:
        """Return the objects that name the policy, and those of the kinds that it selects or selected."""
        namespace, name = policy["metadata"].get("namespace", ""), policy["metadata"]["name"]
        informers = (self._namespaced,) if namespace else (self._namespaced, self._cluster_scoped)
        for informer in informers:
            yield from informer.by_index(_BY_POLICY, f"{namespace}/{name}")
            for api_version, kind in types:
                for federated in informer.by_index(_BY_TYPE, f"{api_version}/{kind}"):
                    if not namespace or federated["metadata"].get("namespace") == namespace:
                        yield federated

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Look again at everything that is overridden, or may be, when a cluster's labels are others than before."""
        before = old["metadata"].get("labels") if old is not None else None
        after = new["metadata"].get("labels") if new is not None else None
        if old is not None and new is not None and before == after:
            return
        for federated in chain(self._namespaced.list(), self._cluster_scoped.list()):
            if stored_overrides(federated, names.OVERRIDE_CONTROLLER) or self._bindings.may_apply(
                subject_of_federated(federated)
            ):
                self.controller.enqueue(key_of(federated))

    def _all_keys(self) -> Iterator[Key]:
        for federated in chain(self._namespaced.list(), self._cluster_scoped.list()):
            yield key_of(federated)


def _named_policies(federated: Mapping[str, Any]) -> Iterator[str]:
    return policies_named(federated, names.OVERRIDE_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL)


def _is_relevant_change(old: Object, new: Object) -> bool:
    """Say whether overrides may change, or our turn may have come: most updates are status and change neither."""
    before, after = old["metadata"], new["metadata"]
    if before.get("generation") is None or before.get("generation") != after.get("generation"):
        return True
    if before.get("labels") != after.get("labels"):
        return True
    return bool(_pending(before) != _pending(after))


def _pending(metadata: Mapping[str, Any]) -> str | None:
    value: str | None = (metadata.get("annotations") or {}).get(names.PENDING_CONTROLLERS)
    return value


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    recorder: Recorder,
    *,
    clock: Clock,
    options: OverrideOptions | None = None,
) -> OverrideController:
    """Return the wired controller; nothing runs yet."""
    return OverrideController(client, informers, types, recorder, clock=clock, options=options)
