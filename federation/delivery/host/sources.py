"""The source objects of the host, for the check that a federated object follows from one (planning's `provenance`).

It also decides whether a source still wants a federated object that somebody deletes. It shares the informers of
sources with the other controllers, so a check reads a cache and sends no request. A source that appears requeues a
federated object that was refused for lack of it. It lives as long as the controller.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from federation.api.federatedtype import Ending, FederatedType
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.delivery.members.keptstate import KeptState
from federation.planning.federatedobject.provenance import (
    is_from,
    is_hand_written,
    is_wanted,
    scope_problem,
    source_problem,
    version_problem,
)
from federation.planning.guard.deletions import is_released
from federation.planning.leftovers.strays import is_kept
from federation.runtime.controller import Key
from federation.runtime.host import Host
from federation.runtime.sourceinformers import SourceInformers


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a federated object is not delivered; `is_final` is False while the caches may still be incomplete."""

    message: str
    is_final: bool = True


class Sources:
    """Follows the sources of every federated type. `enqueue` requeues a federated object."""

    def __init__(self, host: Host, kept: KeptState, enqueue: Callable[[Key], None]) -> None:
        self._client = host.client
        self._objects = host.objects
        self._enqueue = enqueue
        self._informers = SourceInformers(host.informers, self._on_source)
        self._refused: set[Key] = kept.by_object(set())
        host.objects.types.add_listener(self._informers.follow, self._informers.unfollow)

    def check(self, key: Key, federated: Object, type_: FederatedType) -> Refusal | None:
        """Return why the federated object must not be delivered, None when it may be."""
        if problem := scope_problem(federated, type_):
            return Refusal(problem)
        if problem := version_problem(federated, type_):
            # The source has it in the version of the type, and federate is about to write that.
            return Refusal(problem, is_final=is_hand_written(federated))
        if is_hand_written(federated):
            return None
        informer = self._informers.informer(type_.resource)
        source = None
        if informer is not None:
            source = informer.get(key.namespace, federated["spec"]["template"]["metadata"]["name"])
        problem = source_problem(federated, type_, source)
        if not problem:
            self._refused.discard(key)
            return None
        self._refused.add(key)
        if source is None:
            return Refusal(problem, is_final=informer is not None and informer.has_synced)
        # The garbage collector removes the owner reference of a source that is deleted with --cascade=orphan.
        return Refusal(problem, is_final=not source["metadata"].get("deletionTimestamp"))

    async def wants(self, key: Key, federated: Object, type_: FederatedType) -> bool:
        """Return whether a source still asks for a federated object that is being deleted.

        A cache without the source may be incomplete after a restart; then the API server decides.
        """
        source = await self._find(key, federated, type_)
        return source is not None and is_wanted(federated, type_, source)

    async def keeps_data(self, key: Key, federated: Object, type_: FederatedType) -> bool:
        """Return whether the member objects must be released because their source, which they are kept for, lives.

        Somebody excluded the source from federation and deleted its federated object.
        """
        if not is_kept(type_.resource) or type_.ending is Ending.REMOVE or is_released(federated):
            return False
        source = await self._find(key, federated, type_)
        return source is not None and not source["metadata"].get("deletionTimestamp") and is_from(federated, source)

    async def _find(self, key: Key, federated: Object, type_: FederatedType) -> Object | None:
        name = str(federated["spec"]["template"]["metadata"]["name"])
        informer = self._informers.informer(type_.resource)
        if informer is not None and informer.has_synced:
            return informer.get(key.namespace, name)
        with contextlib.suppress(NotFound):
            return await self._client.get(type_.resource, name, key.namespace)
        return None

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        if self._refused and new is not None and (old is None or _uid(old) != _uid(new)):
            key = self._objects.key_of_source(type_, new)
            if key in self._refused:
                self._enqueue(key)


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))
