"""The common arguments of the parts of the delivery as one: the host, what is known of members, and the queue."""

from collections.abc import Callable
from dataclasses import dataclass

from federation.delivery.members.clusters import Clusters
from federation.delivery.members.executor import Executor
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.members.operations import MemberWriter
from federation.runtime.controller import Key
from federation.runtime.host import Host


@dataclass(frozen=True, slots=True)
class Depot:
    """The delivery of one control plane, as its parts see it. It lives as long as the control plane."""

    host: Host
    kept: KeptState
    """Tells who remembers something that an object or a cluster is gone."""
    records: MemberRecords
    executor: Executor
    member_objects: MemberObjectCache
    writer: MemberWriter
    clusters: Clusters
    grace_s: float
    """How long a reconcile waits for members before it publishes the results so far."""
    enqueue: Callable[[Key], None]
    """Requeues a federated object."""
