"""Wiring of the namespace propagation controller: every namespace is looked at again when clusters come, join or go."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from federation.api import conditions, names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_CLUSTERS, Object
from federation.base.clock import Clock
from federation.base.errors import ConfigurationError
from federation.client.protocol import Client
from federation.controllers.nsautoprop.reconcile import Reconciler
from federation.planning import namespaces
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers


@dataclass(frozen=True, slots=True)
class NamespaceOptions:
    """What is not propagated, and limits."""

    exclude_regexp: str = ""
    """Namespaces in whose name this regular expression is found stay on the host; "" excludes none."""
    workers: int = 4
    """Namespaces that are worked on at the same time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)

    def pattern(self) -> re.Pattern[str] | None:
        """Return the compiled expression; ConfigurationError when it is none."""
        if not self.exclude_regexp:
            return None
        try:
            return re.compile(self.exclude_regexp)
        except re.error as error:
            raise ConfigurationError(
                f"ns-autoprop-exclude-regexp {self.exclude_regexp!r} is not a regular expression: {error}"
            ) from error


class NamespaceController:
    """Keeps namespaces in every joined cluster. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        *,
        clock: Clock,
        options: NamespaceOptions | None = None,
    ) -> None:
        chosen = options or NamespaceOptions()
        self._types = types
        self._federated = informers.for_resource(CLUSTER_FEDERATED_OBJECTS)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(
            client,
            federated=lambda key: self._federated.get("", key.name),
            type_of=self._type_of,
            clusters=self._clusters.list,
            exclude=chosen.pattern(),
        )
        self.controller: Controller[Key] = Controller(
            "nsautoprop",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._all_keys,
        )

    async def run(self) -> None:
        """Follow namespaces and clusters, and work once all of them have arrived."""
        self._clusters.add_handler(self._on_cluster)
        self._federated.add_handler(self._on_federated)
        await asyncio.gather(self._types.wait_synced(), self._clusters.wait_synced(), self._federated.wait_synced())
        await self.controller.run()

    def _type_of(self, federated: Object) -> FederatedType | None:
        return self._types.for_federated(federated)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None or not namespaces.is_namespace(new):
            return
        if old is None or _significant(old) != _significant(new):
            self.controller.enqueue(key_of(new))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if _is_target(old) != _is_target(new):
            for key in self._all_keys():
                self.controller.enqueue(key)

    def _all_keys(self) -> Iterator[Key]:
        for federated in self._federated.list():
            if namespaces.is_namespace(federated):
                yield key_of(federated)


def _significant(federated: Object) -> tuple[object, object]:
    """Return what a change of may change the placement, or bring our turn."""
    metadata = federated["metadata"]
    return metadata.get("generation") or federated.get("spec"), metadata.get("annotations")


def _is_target(cluster: Object | None) -> bool:
    if cluster is None or cluster["metadata"].get("deletionTimestamp"):
        return False
    return conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    *,
    clock: Clock,
    options: NamespaceOptions | None = None,
) -> NamespaceController:
    """Return the wired controller; nothing runs yet."""
    return NamespaceController(client, informers, types, clock=clock, options=options)
