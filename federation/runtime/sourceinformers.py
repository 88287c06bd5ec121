"""The informers of source objects: one per federated type that a controller follows.

Controllers share the informers through `Informers`; each has its own handler. `follow` and `unfollow` are listeners of
`FederatedTypes`. It lives as long as the controller.
"""

from collections.abc import Callable, Iterator
from functools import partial

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object, Resource
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers

SourceHandler = Callable[[FederatedType, Object | None, Object | None], None]
"""Called with the type, and the old and new object like an informer's handler."""


class SourceInformers:
    """Follows the sources of federated types with one handler, which may be a late one (`handlers.py`)."""

    def __init__(self, informers: Informers, handler: SourceHandler, *, is_late: bool = False) -> None:
        self._informers = informers
        self._handler = handler
        self._is_late = is_late
        self._followed: dict[Resource, Informer] = {}
        self._stop: dict[Resource, Callable[[], None]] = {}

    def __iter__(self) -> Iterator[tuple[Resource, Informer]]:
        """Yield the followed resources with their informers."""
        return iter(self._followed.items())

    def informer(self, resource: Resource) -> Informer | None:
        """Return the informer of a followed type's sources."""
        return self._followed.get(resource)

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return a cached source, None also for a type that is not followed."""
        informer = self._followed.get(resource)
        return informer.get(namespace, name) if informer is not None else None

    def follow(self, type_: FederatedType) -> None:
        """Follow the type's sources, unless they are followed already."""
        resource = type_.resource
        if resource in self._followed:
            return
        # Known before the handler is added, because that replays the cached objects.
        informer = self._followed[resource] = self._informers.for_resource(resource)
        self._stop[resource] = informer.add_handler(partial(self._handler, type_), is_late=self._is_late)

    def unfollow(self, type_: FederatedType) -> None:
        """Stop following the type's sources."""
        self._unfollow(type_.resource)

    def close(self) -> None:
        """Stop following all types."""
        for resource in list(self._followed):
            self._unfollow(resource)

    def _unfollow(self, resource: Resource) -> None:
        informer = self._followed.pop(resource, None)
        if informer is not None:
            self._stop.pop(resource)()
            self._informers.release(informer)
