"""Elect the process that runs the controllers of a host: the holder of a Lease on the host.

Decision: docs/decisions/0050-one-process-reconciles.md
"""

import platform
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery.clock import CLOCKS_DIFFER_S, Clock, lead_s
from federation.apimachinery.errors import FederationError, StoreUnavailable
from federation.apimachinery.resources import LEASES
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.fencing import Fence
from federation.client.client import Client
from federation.runtime.leaderelection import LeaderElector, LeaderOptions, LeadershipLost

Run = Callable[[], Awaitable[None]]
_LEASE = "federation-controllers"


class Leadership:
    """The candidacy of this process.

    `database_now` returns the time of a database that all candidates share. A process whose clock differs from it does
    not lead: with a clock that is ahead, tolerations, times to live and pauses end, and objects are moved and deleted.
    Decision: docs/decisions/0102-a-wrong-clock-does-not-lead.md
    """

    def __init__(
        self,
        client: Client,
        options: LeaderOptions,
        clock: Clock,
        database_now: Callable[[], Awaitable[datetime | None]] | None = None,
    ) -> None:
        self._clock, self._database_now = clock, database_now
        self._identity = f"{platform.node()}_{uuid.uuid4().hex[:12]}"
        self._elector = LeaderElector(
            client,
            namespace=names.SYSTEM_NAMESPACE,
            name=_LEASE,
            identity=self._identity,
            clock=clock,
            options=options,
            find_problem=self._find_problem,
        )

    async def _find_problem(self) -> str:
        """Return what is wrong with the clock of this process, "" if nothing is, or the database does not answer."""
        if self._database_now is None:
            return ""
        before = self._clock.now()
        try:
            there = await self._database_now()
        except StoreUnavailable:
            return ""  # then the Lease is not written either
        return clock_problem(lead_s(before, there, self._clock.now())) if there is not None else ""

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


def clock_problem(lead_s: float) -> str:
    """Return a sentence about a clock that is `lead_s` ahead of the database's, "" if that is within the tolerance."""
    if abs(lead_s) <= CLOCKS_DIFFER_S:
        return ""
    where = "ahead of" if lead_s > 0 else "behind"
    return (
        f"the clock of this machine is {abs(lead_s):.0f} s {where} the database's: synchronise both; until then this"
        " process runs no controllers"
    )


def supervised(loops: Iterable[tuple[str, Run]], clock: Clock) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return one coroutine function that runs the loops and restarts each that fails."""
    supervisor = Supervisor(clock)
    for name, run in loops:
        supervisor.add(name, run)
    return supervisor.run
