"""The common arguments of the controllers of a simulated member as one: its API, its caches, its pods and time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Resource
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.events import Recorder
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.simulator.controllers.pods import NameSuffixes, PodControl


@dataclass(frozen=True, slots=True)
class Member:
    """One simulated member, as its controllers see it."""

    client: Client
    informers: Informers
    pods: PodControl
    recorder: Recorder
    clock: Clock
    suffixes: NameSuffixes
    name: str
    workers: int
    """Concurrent reconciles of most controllers."""

    def cache(self, resource: Resource) -> Informer:
        """Return the cache of a kind."""
        return self.informers.for_resource(resource)

    def controller(self, name: str, reconcile: Callable[[Key], Awaitable[Result]]) -> Controller[Key]:
        """Return a loop."""
        return Controller(name, reconcile, workers=self.workers, clock=self.clock)
