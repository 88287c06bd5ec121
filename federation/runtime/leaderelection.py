"""Leader election on a Lease: one of several control planes is active, and another takes over when it stops.

The rules are those of client-go: the holder renews before `renew_deadline_s`, others take the Lease only after they
have watched it unchanged for its duration *by their own clock*, and every write carries the resourceVersion that was
read, so of two candidates one loses. Clocks of two machines are never compared. `run` works until cancelled.

Candidates count only time in which the server answered them: while it answers nobody, the holder cannot renew.

Unlike client-go's, a holder whose server is away or slow keeps the Lease until another candidate has it: meanwhile
`may_act` is False. The duration that it writes grows with the time that renewals take, so that candidates leave a slow
leader its Lease. Decision: docs/decisions/0100-a-slow-database-ends-no-process.md
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Gauge

from federation.apimachinery.clock import Clock, SystemClock, to_rfc3339_micro
from federation.apimachinery.errors import AlreadyExists, ApiError, ClusterError, Conflict, FederationError, NotFound
from federation.apimachinery.listening import Silence
from federation.apimachinery.resources import LEASES, Object
from federation.client.client import Client
from federation.runtime.workqueue import Jitter

_log = structlog.get_logger(__name__)
_MARGIN = 1.2
_CHECK_S = 30.0
_is_leader = Gauge("federation_runtime_leader", "1 while this process holds the Lease", ["lease"])


@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """client-go's usual times; maximum >= duration > renew deadline > retry period."""

    lease_duration_s: float = 15.0
    """How long other candidates wait after the last renewal that they observed."""
    renew_deadline_s: float = 10.0
    """How long the holder may fail to renew before it stops."""
    retry_period_s: float = 2.0
    """Pause between renewals; candidates try twice as often."""
    lease_duration_s_max: float = 120.0
    """The duration while renewals are slow is at most this long."""

    def duration_s(self, pace_s: float) -> float:
        """Return the duration for renewals that take `pace_s`: between two of them it must not end.

        A renewal is valid from its start, and the next one begins when it has ended. The renew deadline is the same
        part of each duration.
        """
        between_s = 2 * pace_s + self.retry_period_s
        needed_s = _MARGIN * between_s * self.lease_duration_s / self.renew_deadline_s
        if _MARGIN * between_s <= self.renew_deadline_s:
            return self.lease_duration_s
        return max(self.lease_duration_s, min(needed_s, self.lease_duration_s_max))

    def deadline_s(self, duration_s: float) -> float:
        """Return how long after the start of a renewal with this duration its holder may act."""
        return duration_s * self.renew_deadline_s / self.lease_duration_s


class LeadershipLost(FederationError):
    """Another candidate may lead from now on."""


async def _has_no_problem() -> str:
    return ""


class LeaderElector:
    """One candidate for one Lease. `identity` must be unique among the candidates.

    `find_problem` returns why this candidate must not lead, "" if it may. It is awaited before the Lease is taken, and
    every 30 s by the leader.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock | None = None,
        options: LeaderOptions | None = None,
        jitter: Jitter = random.random,
        find_problem: Callable[[], Awaitable[str]] = _has_no_problem,
    ) -> None:
        self.is_leader = False
        self._client = client
        self._namespace, self._name, self._identity = namespace, name, identity
        self._clock = clock or SystemClock()
        self._options = options or LeaderOptions()
        self._jitter = jitter
        self._find_problem = find_problem
        self._problem = ""
        self._observed: tuple[str, str] = ("", "")
        self._silence = Silence()
        """The time in which the holder of the observed Lease could have renewed it, and did not."""
        self._read_s = 0.0
        """How long the last read of the Lease took."""
        self._may_act_until_s = 0.0
        self._pace_s = 0.0
        """How long renewals take; an estimate that falls by half when they are faster."""
        self._gauge = _is_leader.labels(name)
        self._gauge.set(0)

    @property
    def may_act(self) -> bool:
        """Whether this candidate leads for certain: after a pause of the process its renewal may be overdue."""
        return self.is_leader and self._clock.monotonic() < self._may_act_until_s

    async def run(self, lead: Callable[[], Awaitable[None]], *, is_final: bool = False) -> None:
        """Wait for leadership, run `lead`, cancel it when leadership is lost; again until cancelled or `lead` ends.

        The Lease is released at the end, so that the next candidate need not wait. With `is_final` a lost leadership
        ends the run with LeadershipLost. Leadership is only lost to another candidate: while the server does not
        answer in time, `may_act` is False and `lead` goes on. Afterwards it may act again if no other candidate has
        led.
        """
        while True:
            while not await self._attempt():
                # Candidates look twice as often as the holder renews, so that a released Lease is soon taken.
                await self._clock.sleep(self._options.retry_period_s / 2 * (1 + 0.2 * self._jitter()))
            self._set_leader(leader=True)
            work = asyncio.ensure_future(lead())
            renewal = asyncio.ensure_future(self._keep_renewing())
            try:
                await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
                    return
            finally:
                # End the work before the Lease is released: no other candidate may lead while it runs.
                await _end(work)
                await _end(renewal)
                self._set_leader(leader=False)
                await self._within(self._release(), self._options.retry_period_s)
            if is_final:
                lost = f"another candidate took the Lease {self._namespace}/{self._name}"
                raise LeadershipLost(self._problem or lost)

    async def _keep_renewing(self) -> None:
        """Renew until another candidate leads, or this one must not."""
        is_overdue = False
        checked_s = self._clock.monotonic()
        while not self._has_lost():
            await self._clock.sleep(self._options.retry_period_s)
            if self._clock.monotonic() - checked_s >= _CHECK_S:
                checked_s = self._clock.monotonic()
                if await self._has_problem():
                    return
            if is_overdue := self._report_overdue(was_overdue=is_overdue):
                limit_s = max(self._options.renew_deadline_s, 2 * self._pace_s)
            else:
                limit_s = self._may_act_until_s - self._clock.monotonic()
            if await self._within(self._attempt(), limit_s) is None:
                # It may still take effect; the next one gets more time.
                self._pace_s = min(max(self._pace_s, limit_s), self._options.lease_duration_s_max / 2)

    async def _has_problem(self) -> bool:
        """Return whether this candidate must not lead; log when that changes."""
        problem = await self._find_problem()
        if problem != self._problem and problem:
            _log.warning("this process must not lead", lease=self._name, problem=problem)
        self._problem = problem
        return bool(problem)

    def _report_overdue(self, *, was_overdue: bool) -> bool:
        """Return whether this candidate may not act until its next renewal; log when that changes."""
        is_overdue = not self.may_act
        if is_overdue and not was_overdue:
            _log.warning("lease not renewed in time: nothing is written until it is", lease=self._name)
        elif was_overdue and not is_overdue:
            _log.info("lease renewed again", lease=self._name)
        return is_overdue

    def _has_lost(self) -> bool:
        """Return whether the last Lease that was read is not this candidate's."""
        return self._observed != ("", "") and self._observed[0] != self._identity

    async def _attempt(self) -> bool:
        """Acquire or renew the Lease; return False if another candidate holds it or the server does not answer."""
        started_s = self._clock.monotonic()
        duration_s = self._options.duration_s(self._pace_s)
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            lease = None
        except (ApiError, ClusterError) as failure:
            return self._fail(failure)
        if lease is not None:
            self._look(lease, started_s)
        if not self.is_leader and (lease is None or self._may_take(lease)) and await self._has_problem():
            return False
        try:
            if lease is None:
                await self._client.create(LEASES, self._to_lease(None, duration_s))
            elif self._may_take(lease):
                if (
                    self.is_leader
                ):  # what is written now may take effect although its answer is lost, and may be shorter
                    self._may_act_until_s = min(self._may_act_until_s, started_s + self._options.deadline_s(duration_s))
                await self._client.update(LEASES, self._to_lease(lease, duration_s))
            else:
                return False
        except (Conflict, AlreadyExists):
            return False
        except (ApiError, ClusterError) as failure:
            return self._fail(failure)
        self._observed = (self._identity, "")
        # Others may have seen the new Lease soon after the start of this attempt.
        self._may_act_until_s = started_s + self._options.deadline_s(duration_s)
        self._pace_s = max(self._clock.monotonic() - started_s, self._pace_s / 2)
        return True

    def _look(self, lease: Object, started_s: float) -> None:
        """Record the Lease that was read, and count the silence of its holder.

        A read that takes much longer than the one before it was held up, and so were the holder's renewals: only the
        usual time counts. A server that is always slow holds nothing up, and its time counts.
        """
        now_s = self._clock.monotonic()
        observed = (_holder_of(lease), str(lease["metadata"].get("resourceVersion", "")))
        if observed != self._observed:
            self._observed = observed
            self._silence.end(now_s)
        self._silence.look(now_s, 2 * self._options.retry_period_s + self._read_s)
        self._read_s = now_s - started_s

    def _may_take(self, lease: Object) -> bool:
        holder = _holder_of(lease)
        if self.is_leader:
            # A Lease that somebody else held and released is free, but its holder may have written since.
            return holder == self._identity
        if holder in ("", self._identity):
            return True
        duration_s = float((lease.get("spec") or {}).get("leaseDurationSeconds") or self._options.lease_duration_s)
        return self._silence.counted_s >= duration_s

    def _to_lease(self, old: Object | None, duration_s: float) -> Object:
        now = to_rfc3339_micro(self._clock.now())
        before = (old.get("spec") or {}) if old is not None else {}
        is_mine = before.get("holderIdentity") == self._identity
        transitions = int(before.get("leaseTransitions") or 0)
        if old is not None and not is_mine:
            transitions += 1
        metadata = old["metadata"] if old is not None else {"name": self._name, "namespace": self._namespace}
        spec = {
            **before,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(duration_s)),
            "acquireTime": before.get("acquireTime", now) if is_mine else now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    async def _within(self, attempt: Coroutine[Any, Any, bool], limit_s: float) -> bool | None:
        """Return the attempt's result; cancel it and return None when it takes longer than `limit_s`."""
        task, deadline = asyncio.ensure_future(attempt), asyncio.ensure_future(self._clock.sleep(limit_s))
        try:
            await asyncio.wait((task, deadline), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            deadline.cancel()

    async def _release(self) -> bool:
        """Release the Lease, so that the next candidate need not wait."""
        while True:
            try:
                lease = await self._client.get(LEASES, self._name, self._namespace)
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") == self._identity:
                    free = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update(LEASES, {**lease, "spec": free})
            except Conflict:
                continue  # a renewal that was cancelled took effect after all
            except (ApiError, ClusterError) as failure:
                return self._fail(failure)
            return True

    def _fail(self, failure: Exception) -> bool:
        _log.debug("lease not written", lease=self._name, error=str(failure))
        return False

    def _set_leader(self, *, leader: bool) -> None:
        if leader != self.is_leader:
            self.is_leader = leader
            self._gauge.set(1 if leader else 0)
            _log.info("leadership", lease=self._name, identity=self._identity, leader=leader)


def _holder_of(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


async def _end(task: asyncio.Future[None]) -> None:
    """Cancel the task and wait until it has ended, with any result."""
    task.cancel()
    await asyncio.wait((task,))
