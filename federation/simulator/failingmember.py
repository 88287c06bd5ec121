"""One member of the fleet: its process while it has one, and the failure that a user simulates in it.

A failure lasts until the next command. `start` returns to normal from every failure. A process that somebody kills is
not started again by itself. A light member has no process, but the same life (`lightmember.py`).
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, assert_never

import structlog

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.simulator.failures import FailureCommand, MemberState, Verb
from federation.simulator.options import MemberOptions

_STOP_S = 7.0
"""Time for an orderly stop before the process is killed; `fedctl up` waits 10 s for all members."""
_log = structlog.get_logger(__name__)


class RunningMember(Protocol):
    """A member that runs: a `MemberProcess` or a `LightMember`."""

    url: str
    pid: int | None
    """None for a member without a process of its own."""

    def disturb(self, latency_s: float, error_share: float) -> None:
        """Delay every response and batch of watch events, and answer a share of the requests with 503; 0 ends it."""
        ...

    def set_frozen(self, is_frozen: bool) -> None:
        """Accept connections and answer nothing while frozen."""
        ...

    def kill(self) -> None:
        """End at once and break all connections."""
        ...

    def close(self) -> None:
        """Begin to stop in an orderly way."""
        ...

    async def wait(self) -> int:
        """Return the exit code when the member has ended, negative for the signal that ended it."""
        ...


StartMember = Callable[[MemberOptions, bool], Awaitable[RunningMember]]
"""Starts a member and returns when it serves; FederationError when it cannot. Only if the flag is set may it serve at
another address than before."""


class FailingMember:
    """A member that can be stopped, started, frozen and disturbed."""

    def __init__(self, options: MemberOptions, kubeconfig: Path, start: StartMember, clock: Clock) -> None:
        self._options = options
        self._kubeconfig = kubeconfig
        self._start = start
        self._clock = clock
        self._lock = asyncio.Lock()
        self._process: RunningMember | None = None
        self._exit: asyncio.Task[None] | None = None
        self._flapping: asyncio.Task[None] | None = None
        self._url = ""
        self._state = MemberState.STOPPED
        self._detail = ""
        self._since: datetime = clock.now()

    @property
    def description(self) -> dict[str, Any]:
        """Name, URL, kubeconfig and labels."""
        labels = dict(self._options.labels)
        return {"name": self._options.name, "server": self._url, "kubeconfig": str(self._kubeconfig), "labels": labels}

    @property
    def status(self) -> dict[str, Any]:
        """Name, state with details and start time, and the process while there is one."""
        return {
            "name": self._options.name,
            "state": self._state.value,
            "detail": self._detail,
            "since": self._since.isoformat(),
            "pid": self._process.pid if self._process is not None else None,
            "server": self._url,
        }

    async def start(self) -> None:
        """Start the process. The first one may take a free port, later ones must serve at the same address."""
        process = await self._start(self._options, not self._url)
        self._process, self._url = process, process.url
        self._exit = asyncio.create_task(self._record_exit(process))
        self._set(MemberState.RUNNING)

    async def execute(self, command: FailureCommand) -> None:
        """Simulate a failure, or end it; FederationError when the member cannot start again."""
        async with self._lock:
            if self._flapping is not None:
                self._flapping.cancel()
                await asyncio.wait((self._flapping,))
                self._flapping = None
            await self._execute(command)

    async def _execute(self, command: FailureCommand) -> None:
        match command.verb:
            case Verb.START:
                await self._recover()
            case Verb.STOP:
                await self._kill()
                self._set(MemberState.STOPPED)
            case Verb.HANG:
                self._running().set_frozen(True)
                self._set(MemberState.HANGING)
            case Verb.SLOW:
                self._running()
                await self._recover()
                self._running().disturb(command.latency_s, 0)
                self._set(MemberState.SLOW, f"{command.latency_s:g} s")
            case Verb.FAIL:
                self._running()
                await self._recover()
                self._running().disturb(0, command.error_share)
                self._set(MemberState.FAILING, f"{command.error_share:.0%} of requests")
            case Verb.FLAP:
                await self._recover()
                self._flapping = asyncio.create_task(self._flap(command.period_s, command.count))
                self._set(MemberState.FLAPPING, f"every {command.period_s:g} s")
            case Verb.STATUS:
                pass
            case _:
                assert_never(command.verb)

    async def end(self) -> None:
        """Stop for good: in an orderly way if the member responds."""
        if self._flapping is not None:
            self._flapping.cancel()
        process, self._process = self._process, None
        if process is None or self._exit is None:
            return
        if self._state is MemberState.HANGING:
            process.kill()
        process.close()
        await asyncio.wait((self._exit,), timeout=_STOP_S)
        if not self._exit.done():
            process.kill()
            await self._exit

    def _set(self, state: MemberState, detail: str = "") -> None:
        self._state, self._detail, self._since = state, detail, self._clock.now()

    def _running(self) -> RunningMember:
        if self._process is None:
            raise ConfigurationError(
                f"{self._options.name} is stopped; start it with: fedctl sim start {self._options.name}"
            )
        return self._process

    async def _recover(self) -> None:
        if self._process is None:
            await self.start()
            return
        self._process.disturb(0, 0)
        self._process.set_frozen(False)
        self._set(MemberState.RUNNING)

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._exit is not None:
            process.kill()
            await asyncio.wait((self._exit,))

    async def _record_exit(self, process: RunningMember) -> None:
        """Wait for the end of the process, and report it unless the fleet caused it."""
        code = await process.wait()
        if self._process is process:
            self._process = None
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._set(MemberState.STOPPED, how)
            _log.warning("a simulated member ended", member=self._options.name, how=how)

    async def _flap(self, period_s: float, count: int) -> None:
        """Stop and start the member again and again; it runs in the end."""
        detail, done = f"every {period_s:g} s", 0
        try:
            while not count or done < count:
                await self._kill()
                self._set(MemberState.FLAPPING, f"{detail}, down, {done} times back")
                await self._clock.sleep(period_s / 2)
                await self.start()
                done += 1
                self._set(MemberState.FLAPPING, f"{detail}, up, {done} times back")
                await self._clock.sleep(period_s / 2)
            self._set(MemberState.RUNNING, f"{done} times back")
        except FederationError as error:
            self._set(MemberState.STOPPED, str(error))
            _log.warning("a flapping member did not start again", member=self._options.name, error=str(error))
