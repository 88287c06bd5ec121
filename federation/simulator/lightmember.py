"""Light members: many simulated members in one process, in memory, behind one port (`sharedport.py`).

Each is a complete member: API server, nodes, controllers, credentials. They share what would be equal in all of them:
the port, the keys of the API server, and the bytes of the objects that every new cluster has. Nothing is stored, so a
light member ends with the process. Its failures happen in the network in front of it, because it has no process that
could be killed or stopped.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.apiserver.auth.pki import ensure_pki
from federation.apiserver.auth.serveridentity import ServerIdentity
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.simulator.failingmember import StartMember
from federation.simulator.member import SimulatedMember, server_options
from federation.simulator.network import Network
from federation.simulator.options import MemberOptions, kubeconfig_of
from federation.simulator.runningpods import copies, create_model
from federation.simulator.sharedport import SharedPort

_STORE = StoreOptions(history_rows_max=1_000)
"""A watch that resumes further back lists again."""
_STARTS_MAX = 4
"""Members that start at the same time; the others wait, so that those that serve answer soon: all share one core."""


class LightMember:
    """One running member: a `RunningMember`. After `kill` another one can take over its store and task."""

    pid: int | None = None

    def __init__(self, url: str, network: Network, task: "asyncio.Task[None]") -> None:
        self.url = url
        self._network = network
        self._task = task
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: self._ended(1))

    def disturb(self, latency_s: float, error_share: float) -> None:
        self._network.latency_s, self._network.error_share = latency_s, error_share

    def set_frozen(self, is_frozen: bool) -> None:
        self._network.set_frozen(is_frozen)

    def kill(self) -> None:
        self._network.cut()
        self._ended(-9)

    def close(self) -> None:
        self._ended(0)
        self._network.cut()
        self._task.cancel()

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def restarted(self) -> "LightMember":
        """Return the member after a start; it has the objects of before."""
        self._network.restore()
        return LightMember(self.url, self._network, self._task)

    def _ended(self, code: int) -> None:
        if not self._end.done():
            self._end.set_result(code)


class _Seed(NamedTuple):
    """The originals that light members copy: the objects of each new cluster, and a pod."""

    entries: list[Entry]
    pod: Object


class _LightMembers:
    """Starts light members in a task group."""

    def __init__(self, directory: Path, clock: Clock, port: SharedPort, group: asyncio.TaskGroup) -> None:
        self._directory = directory
        self._clock = clock
        self._port = port
        self._group = group
        self._members: dict[str, LightMember] = {}
        self._seeds: dict[bool, asyncio.Task[_Seed]] = {}
        self._starts = asyncio.Semaphore(_STARTS_MAX)

    async def start(self, options: MemberOptions, _: bool) -> LightMember:
        """As `StartMember`; the address never changes."""
        known = self._members.get(options.name)
        async with self._starts:
            member = await self._run(options) if known is None else known.restarted()
        self._members[options.name] = member
        return member

    async def _run(self, options: MemberOptions) -> LightMember:
        network = Network(self._clock, seed=options.name)
        store = MemoryStore(_STORE, clock=self._clock, seed=await self._entries(options))
        url = self._port.url(options.name)
        member = self._member(options, store, network, url)
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self._group.create_task(member.run(started.set_result), name=options.name)
        await asyncio.wait((started, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return LightMember(url, network, task)

    def _member(self, options: MemberOptions, store: MemoryStore, network: Network, url: str) -> SimulatedMember:
        kubeconfig = kubeconfig_of(options.name, self._directory)
        server = server_options(options, _keys(self._directory), kubeconfig, tls=ServerIdentity(url=url))
        listen = partial(self._port.listen, options.name)
        return SimulatedMember(options, store, server, self._clock, network=network, listen=listen)

    async def _entries(self, options: MemberOptions) -> list[Entry]:
        """Return what a new member begins with: the common objects, and pods on its own nodes."""
        seed = await self._seed(options)
        if not options.running_pods:
            return seed.entries
        last = max(entry.revision for entry in seed.entries)
        return [*seed.entries, *copies(seed.pod, options.nodes, options.running_pods, last)]

    async def _seed(self, options: MemberOptions) -> "_Seed":
        """Return what every new member has: the objects of one that only exists to be copied."""
        if (seed := self._seeds.get(options.has_workload_spreads)) is None:
            seed = self._seeds[options.has_workload_spreads] = self._group.create_task(self._make_seed(options))
        return await asyncio.shield(seed)

    async def _make_seed(self, options: MemberOptions) -> "_Seed":
        store = MemoryStore(_STORE, clock=self._clock)
        member = self._member(options, store, Network(self._clock), self._port.url(options.name))
        await member.prepare()
        await member.settle()
        # Namespaces identify a cluster: that of kube-system has the cluster's uid.
        entries = [each for each in (await store.list("/")).entries if not each.key.startswith("/core/namespaces/")]
        pod = await create_model(member.client)
        await store.close()
        return _Seed(entries, pod)


@asynccontextmanager
async def light_members(directory: Path, clock: Clock) -> AsyncIterator[StartMember]:
    """Serve the shared port while the block runs, which starts members; all end with it."""
    pki = await asyncio.to_thread(ensure_pki, _keys(directory) / "pki", now=clock.now(), common_name="light-members")
    port = SharedPort(pki.serving)
    serving = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(port.run(serving.set), name="shared-port")]
        await serving.wait()
        try:
            yield _LightMembers(directory, clock, port, group).start
        finally:
            for task in tasks:
                task.cancel()


def _keys(directory: Path) -> Path:
    """Return the directory of the keys that all light members use."""
    return directory / "light"
