"""The connections of a control plane under test: to its host, and to members that have faults.

`world.py` creates them. The faults themselves are described in `faults.py`; `member_world.Line` breaks and hangs.
"""

import asyncio
from collections.abc import Callable

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import (
    ApiError,
    ClusterUnreachable,
    Expired,
    FederationError,
    InternalError,
    Timeout,
)
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.client.client import Request, Watch
from federation.client.local import LocalTransport
from tests.support.deceits import TRUTH, Deceit
from tests.support.faults import Faults, status_of
from tests.support.member_world import Line, logged


def partial_write(registry: Registry, request: Request) -> str | None:
    """Return what is wrong with a write in a version that its server does not store: it removes the other fields.

    A webhook converts without loss, and whole manifests may say what the stored version cannot.
    """
    if request.verb not in ("patch", "update") or request.dry_run:
        return None
    resource = request.resource
    info = registry.kinds.served(resource.group, resource.version, resource.kind)
    if info is None or not info.is_custom or info.conversion is not None:
        return None
    stored = info.storage_version or resource.version
    if stored == resource.version or not registry.kinds.served(resource.group, stored, resource.kind):
        return None
    return f"{resource.kind} {request.name} is written as {resource.version} and stored as {stored}"


class _OpenWatch:
    """A watch of the control plane, and the task that waits for its next event."""

    __slots__ = ("end", "is_canceled", "is_waiting", "task")

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self.is_waiting = False
        self.is_canceled = False
        """Whether its task was canceled to end the wait, and not because the control plane stops."""
        self.end: FederationError | None = None


class Cable:
    """What the connections of the control plane have in common: they can be cut, and requests can take two ways.

    In process a request ends without a suspension. With `has_round_trips` it suspends before and after its effect.
    """

    is_cut = False
    has_round_trips = False

    async def travel(self) -> None:
        """Take one way between the control plane and a server; a killed control plane gets no further."""
        if self.has_round_trips and not self.is_cut:
            await asyncio.sleep(0)
        if self.is_cut:
            raise asyncio.CancelledError


class MemberLine(Line):
    """The connection from the control plane to a member.

    It counts pending calls, can hold watch events, drop watches and answer errors and lies (`faults`), and collects
    the deletions that nothing on the host asks for, and the writes that lose fields (`objections`).
    """

    def __init__(self, registry: Registry, clock: ManualClock, seed: int = 0) -> None:
        super().__init__(registry, clock)
        self.cable = Cable()
        self.faults = Faults(seed)
        self.deceit: Deceit = TRUTH
        """What the member answers instead of the truth; change it with `begin_deceit`."""
        self.objections: list[str] = []
        self.judge: Callable[[Request, Object | None], str | None] = lambda _request, _live: None
        self.in_flight = 0
        self.in_flight_seen_max = 0
        self.is_late = False
        """Whether writes that hang take effect when the connection works again, even if their caller was cancelled."""
        self._late: set[asyncio.Task[Object]] = set()
        self._watches: set[_OpenWatch] = set()

    def connect(self, registry: Registry) -> None:
        """Lead to another server from now on."""
        self._registry, self._generation = registry, -1
        self._infos.clear()
        self.faults.forget()
        self.drop_watches(ClusterUnreachable("connection reset"))

    def drop_watches(self, error: FederationError) -> None:
        """End all watches with an error."""
        for watch in list(self._watches):
            watch.end = error
            if watch.is_waiting and watch.task is not None:
                watch.is_waiting, watch.is_canceled = False, True
                watch.task.cancel()

    def begin_deceit(self, deceit: Deceit) -> None:
        """Lie from now on, also to caches that are complete: they must list again."""
        self.deceit = deceit
        self.drop_watches(Expired("too old resource version"))

    def heal(self) -> None:
        """End all faults. Caches that hold lies are filled again, as after a restart of the member's API server."""
        has_lied = bool(self.faults.lie) or self.deceit is not TRUTH
        self.faults.end()
        self.deceit, self.is_silent = TRUTH, False
        self.delays_s.clear()
        self.mend()
        if has_lied:
            self.drop_watches(Expired("too old resource version"))

    async def request(self, request: Request) -> Object:
        await self.cable.travel()
        if request.verb == "delete":
            await self._judge(request)
        if (problem := partial_write(self._registry, request)) is not None:
            self.objections.append(f"in a member: {problem}")
        error, is_late = self.faults.error_for(request.verb)
        if error is not None and not is_late:
            await self._pass(logged(request.verb), request.resource.plural, request.name)
            raise error
        answer = await self.deceit.answer(request, self._request)
        await self.cable.travel()
        if error is not None:
            raise error
        return self.faults.tell(request, answer) if request.verb == "list" else answer

    async def _judge(self, request: Request) -> None:
        try:
            live = await LocalTransport.request(self, request._replace(verb="get", uid="", resource_version=""))
        except ApiError:
            return
        if (problem := self.judge(request, live)) is not None:
            self.objections.append(problem)

    async def _request(self, request: Request) -> Object:
        if request.verb not in ("patch", "apply") or self.mode != "hang" or not self.is_late:
            return await super().request(request)
        doing = asyncio.create_task(self._patch_when_mended(request))
        self._late.add(doing)
        doing.add_done_callback(self._forget)
        return await asyncio.shield(doing)

    def _forget(self, done: asyncio.Task[Object]) -> None:
        self._late.discard(done)
        if not done.cancelled():
            done.exception()  # the caller may have been cancelled; retrieve the error to avoid a warning

    async def _patch_when_mended(self, request: Request) -> Object:
        self.calls.append(("patch", request.resource.plural, request.name))
        await self._mended.wait()
        return await LocalTransport.request(self, request)

    async def _pass(self, verb: str, what: str, name: str, timeout_s: float = 10.0) -> None:
        if verb == "raw":  # health checks do not count against the limit of calls
            await super()._pass(verb, what, name, timeout_s)
            return
        self.in_flight += 1
        self.in_flight_seen_max = max(self.in_flight_seen_max, self.in_flight)
        try:
            await super()._pass(verb, what, name, timeout_s)
        finally:
            self.in_flight -= 1

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        error, _ = self.faults.error_for("raw")
        if error is None:
            return self.deceit.document(path, *await super().raw(method, path, body, timeout_s, accept))
        await self._pass("raw", path, "", timeout_s)
        answer = status_of(error)
        if answer is None:
            raise error
        return answer

    async def stream(self, request: Request) -> Watch:
        await self._pass("watch", request.resource.plural, "")
        error, _ = self.faults.error_for("watch")
        if error is None and self.faults.must_list(request):
            error = Expired("too old resource version")
        if error is not None:
            raise error
        watch = _OpenWatch()
        self._watches.add(watch)
        batches = super().stream(request)
        try:
            watch.is_waiting = True
            async for batch in batches:
                await self._pass_on()
                watch.is_waiting = False
                yield self.deceit.told(request, batch)
                if watch.end is not None:
                    raise watch.end
                watch.is_waiting = True
        except asyncio.CancelledError:
            if not watch.is_canceled or watch.end is None or watch.task is None or watch.task.uncancel() > 0:
                raise
            raise watch.end from None
        finally:
            self._watches.discard(watch)
            await batches.aclose()

    async def close(self) -> None:
        """Stay open: a restarted control plane uses the same connection."""

    async def _pass_on(self) -> None:
        """Hold an event while the connection hangs."""
        while self.mode == "hang":
            await self._mended.wait()
        if self.mode == "down":
            await super()._pass("watch", "", "")


class HostLine(LocalTransport):
    """The control plane's line to its host; remembers the dry runs, which ask for the host's verdict.

    `failing` are the verbs and plurals of requests that the host's store fails. After `hold`, answers to patches of a
    kind are lost and its watches deliver nothing, until `release`.
    """

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.cable = Cable()
        self.reviews: list[Request] = []
        self.failing: set[tuple[str, str]] = set()
        self.objections: list[str] = []
        self.lost = 0
        """Answers to patches that took effect."""
        self._held = ""
        self._released = asyncio.Event()

    def hold(self, plural: str) -> None:
        """Lose answers and events of a kind from now on."""
        self._held = plural
        self._released.clear()

    def release(self) -> None:
        """Deliver everything again."""
        self._held = ""
        self._released.set()

    async def stream(self, request: Request) -> Watch:  # type: ignore[override]  # a generator is a Watch
        async for batch in LocalTransport.stream(self, request):
            while self._held == request.resource.plural:
                await self._released.wait()
            yield batch

    async def request(self, request: Request) -> Object:
        if request.dry_run:
            self.reviews.append(request)
        if (problem := partial_write(self._registry, request)) is not None:
            self.objections.append(problem)
        await self.cable.travel()
        if (request.verb, request.resource.plural) in self.failing:
            raise InternalError("the store does not answer (injected)")
        answer = await super().request(request)
        if request.verb == "patch" and not request.subresource and request.resource.plural == self._held:
            self.lost += 1
            raise Timeout("the answer is lost (injected)")
        await self.cable.travel()
        return answer
