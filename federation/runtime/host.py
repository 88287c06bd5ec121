"""The common arguments of all controllers as one: the host, its caches, the members, events and time."""

from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.listening import Presence
from federation.client.client import Client
from federation.runtime.events import Recorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.members import Members


@dataclass(frozen=True, slots=True)
class Host:
    """The host of one control plane, as its controllers see it. It lives as long as the control plane."""

    client: Client
    objects: FederatedObjects
    """The view of federated objects."""
    informers: Informers
    """The caches of the host."""
    members: Members
    """The caches of the members, and the connections to them."""
    recorder: Recorder
    """Emits Events on objects of the host."""
    clock: Clock
    presence: Presence
    """How long this process stood still, for those that wait for an answer."""
