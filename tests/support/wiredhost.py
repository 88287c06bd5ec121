"""A host as controllers get it, over a client of a test."""

from federation.api.federatedtype import from_config
from federation.apimachinery.clock import Clock
from federation.apimachinery.listening import Presence
from federation.client.client import Client
from federation.client.pool import ClusterPool
from federation.planning.federatedobject.naming import federated_object_name
from federation.runtime.events import EventRecorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.host import Host
from federation.runtime.informers import Informers
from federation.runtime.members import Members


def wire_host(
    client: Client,
    clock: Clock,
    *,
    pool: ClusterPool | None = None,
    informers: Informers | None = None,
    types: FederatedTypes | None = None,
    recorder: EventRecorder | None = None,
) -> Host:
    """Return the host with its caches; without a pool it has no members. Nothing runs yet."""
    informers = informers or Informers(client, clock=clock)
    types = types or FederatedTypes(informers, from_config)
    objects = FederatedObjects(client, informers, types, name_of=federated_object_name, clock=clock)
    members = Members(pool or ClusterPool(clock=clock), clock=clock)
    recorder = recorder or EventRecorder(client, clock=clock)
    return Host(client, objects, informers, members, recorder, clock, Presence(clock))
