"""Elect the process that runs the controllers of a host: the holder of a Lease on the host.

Decision: docs/decisions/0050-one-process-reconciles.md
"""

import platform
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import FederationError
from federation.apimachinery.resources import LEASES
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.fencing import Fence
from federation.client.client import Client
from federation.runtime.leaderelection import LeaderElector, LeaderOptions, LeadershipLost

Run = Callable[[], Awaitable[None]]
_LEASE = "federation-controllers"


class Leadership:
    """The candidacy of this process."""

    def __init__(self, client: Client, options: LeaderOptions, clock: Clock) -> None:
        self._identity = f"{platform.node()}_{uuid.uuid4().hex[:12]}"
        self._elector = LeaderElector(
            client, namespace=names.SYSTEM_NAMESPACE, name=_LEASE, identity=self._identity, clock=clock, options=options
        )

    def fence(self, registry: Registry) -> Fence:
        """Return what refuses writes of this process to an embedded host after another one took the Lease."""
        leases = registry.kinds.lookup(LEASES.group, LEASES.version, LEASES.plural)
        return Fence(leases.key(names.SYSTEM_NAMESPACE, _LEASE), f'"holderIdentity":"{self._identity}"'.encode())

    def may_act(self) -> bool:
        """Return whether this process leads for certain: members, and hosts that are not embedded, refuse no writes."""
        return self._elector.may_act

    async def run(self, lead: Run) -> None:
        """Run `lead` while this process leads; FederationError when it does not any more.

        The process ends then, and its next start has no state of the time when it led. A host that does not answer, or
        slowly, ends nothing: the process writes nothing until its Lease is renewed.
        """
        try:
            await self._elector.run(lead, is_final=True)
        except LeadershipLost as lost:
            raise FederationError(f"{lost}; another process runs the controllers now: start this one again") from lost


def supervised(loops: Iterable[tuple[str, Run]], clock: Clock) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return one coroutine function that runs the loops and restarts each that fails."""
    supervisor = Supervisor(clock)
    for name, run in loops:
        supervisor.add(name, run)
    return supervisor.run
