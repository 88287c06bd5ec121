"""The source objects of the host, for the check that a federated object follows from one (planning's `provenance`).

It shares the informers of sources with the other controllers, so the check reads a cache and sends no request. A source
that appears requeues a federated object that was refused for lack of it. It lives as long as the controller.
"""

from collections.abc import Callable
from dataclasses import dataclass

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.provenance import is_hand_written, scope_problem, source_problem
from federation.runtime.controller import Key
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.sourceinformers import SourceInformers


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a federated object is not delivered; `is_final` is False while the caches may still be incomplete."""

    message: str
    is_final: bool = True


class Sources:
    """Follows the sources of every federated type. `enqueue` requeues a federated object."""

    def __init__(self, objects: FederatedObjects, informers: Informers, enqueue: Callable[[Key], None]) -> None:
        self._objects = objects
        self._enqueue = enqueue
        self._informers = SourceInformers(informers, self._on_source)
        self._refused: set[Key] = set()
        objects.types.add_listener(self._informers.follow, self._informers.unfollow)

    def check(self, key: Key, federated: Object, type_: FederatedType) -> Refusal | None:
        """Return why the federated object must not be delivered, None when it may be."""
        if problem := scope_problem(federated, type_):
            return Refusal(problem)
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

    def forget(self, key: Key) -> None:
        """Forget a federated object that is gone or being deleted."""
        self._refused.discard(key)

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        if self._refused and new is not None and (old is None or _uid(old) != _uid(new)):
            metadata = new["metadata"]
            key = self._objects.key_for(type_, metadata.get("namespace", ""), metadata["name"])
            if key in self._refused:
                self._enqueue(key)


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))
