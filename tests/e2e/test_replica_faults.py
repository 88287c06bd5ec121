"""Faults of replicas and of their database under load, as processes: nothing acknowledged is lost, nothing is doubled.

Each test has clients, watchers and a federated load on `FAULT_REPLICAS` replicas (2), causes a fault `FAULT_ROUNDS` times
(1), and compares what everybody saw with the database's log. With several rounds the times of the Leases are those of the
product, clients do not pause, a paused leader sleeps for 30 s, and the tests print how long a failover takes.

`make test` has the hardest fault of each kind. The others are nightly: `test_commit_steps.py` in tests/conformance/store
kills and pauses a process without a control plane at each step of a commit, `test_replicas.py` stops a leader in order.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.support.failpoints import Step
from tests.support.federation import fedctl, free_clusters
from tests.support.joining import POLICY
from tests.support.leftsockets import collect_left_sockets
from tests.support.postgres import PostgresServer
from tests.support.registerload import KEYS, Change, Load, Watcher, to_changes
from tests.support.replicas import PATIENT_S, Api, Replica, ReplicaSet, holder, is_ready, leads, until
from tests.support.slowdatabase import SlowDatabase

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "1"))
REPLICAS = int(os.environ.get("FAULT_REPLICAS", "2"))
PAUSE_S = 30.0 if ROUNDS > 1 else 0.0
"""How long a paused leader sleeps at least; it always sleeps until another one leads and writes."""
SLOW_S = 0.3
"""How late each answer of a slow database is: a commit has about ten."""
CLIENT_PAUSE_S = 0.0 if ROUNDS > 1 else 0.03
LOST = "another process runs the controllers now: start this one again"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts replicas again and waits for Leases, under load"),
    pytest.mark.postgres,
    pytest.mark.real_time,
    pytest.mark.timeout(600 * ROUNDS),
    pytest.mark.xdist_group("replica-faults"),
    # A request that times out while it connects leaves its socket to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SHORT_LEASE = {
    "FEDERATION_LEASE_DURATION_S": "5",
    "FEDERATION_LEASE_RENEW_DEADLINE_S": "4",
    "FEDERATION_LEASE_RETRY_PERIOD_S": "0.5",
}
PUSHED = [f"pushed-{number}" for number in range(4)]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
KEYS_OF_DEFAULT = "/core/configmaps/default/"


@dataclass
class Site:
    """Replicas on one PostgreSQL, with one member."""

    postgres: PostgresServer
    line: SlowDatabase
    """The way of all replicas to the database."""
    database: str
    replicas: ReplicaSet
    member: Path
    pushed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PUSHED, 0))
    """The last acknowledged value of each federated ConfigMap."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with (
        PostgresServer(wal_segment_mib=1) as postgres,
        free_clusters(folder / "clusters", 1) as clusters,
        SlowDatabase(url := postgres.create_database()) as line,
        ReplicaSet(folder / "replicas", line.url, REPLICAS, SHORT_LEASE if ROUNDS == 1 else {}) as replicas,
    ):
        kubectl = replicas.replicas[0].kubectl
        fedctl("join", "frankfurt", "--kubeconfig", str(clusters[0]), KUBECONFIG=str(kubectl.kubeconfig))
        selectors = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        kubectl.apply({**POLICY, "spec": {**POLICY["spec"], "resourceSelectors": selectors}})
        kubectl.apply(*[a_config_map(name, 0) for name in PUSHED])
        yield Site(postgres, line, urlsplit(url).path[1:], replicas, clusters[0])
    collect_left_sockets()


def a_config_map(name: str, number: int) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": str(number)}}


class Trial:
    """The load on a site during one test."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.postgres = site.postgres
        self.load = Load(site.replicas, pause_s=CLIENT_PAUSE_S)
        self.member = Api("frankfurt", site.member)
        self.delivered: Watcher
        self.failovers_s: list[float] = []

    async def leader(self) -> tuple[Replica, Replica]:
        """Return the replica that leads, and another one, as soon as all are ready."""
        found: list[Replica] = []

        async def known() -> bool:
            ready = [await is_ready(api) for api in self.load.apis]
            leading = [await leads(api) for api in self.load.apis]
            found[:] = sorted(self.site.replicas.replicas, key=lambda replica: not leading[_number(replica)])
            return all(ready) and sum(leading) == 1

        await until(known, "ready replicas, one of which leads")
        return found[0], found[1]

    async def failover(self, cause: Callable[[], None], other: Replica) -> None:
        """Cause the end of the leader and wait for another one."""
        api = self.load.apis[_number(other)]
        before = await holder(api)
        cause()

        async def is_taken() -> bool:
            return await holder(api) not in ("", before)

        self.failovers_s.append(await until(is_taken, "another leader"))

    async def pause(self, leader: Replica, other: Replica, cause: Callable[[], None]) -> None:
        """Pause the leader until another one leads and writes; it ends when it wakes, and is started again."""
        starts = leader.starts
        began_s = time.monotonic()
        try:
            await self.failover(cause, other)
            await wait_for_a_write(self, other)
            await asyncio.sleep(began_s + PAUSE_S - time.monotonic())
        finally:
            leader.send(signal.SIGCONT)

        async def is_started_again() -> bool:
            return leader.starts > starts

        await until(is_started_again, "the end of a leader that was paused")

    async def push(self) -> None:
        """Change the federated ConfigMaps in turn until cancelled; each value is larger than the one before."""
        number = max(self.site.pushed.values())
        while True:
            for name in PUSHED:
                number += 1
                api = self.load.apis[number % len(self.load.apis)]
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    patch, kind = {"data": {"value": str(number)}}, "application/merge-patch+json"
                    status, _ = await api.request("PATCH", f"{CONFIG_MAPS}/{name}", patch, content_type=kind)
                    if status == 200:
                        self.site.pushed[name] = number
                await asyncio.sleep(0.1)

    async def judge(self) -> None:
        """Check the registers, and the federated ConfigMaps in the member, against the log.

        A paused process answers the requests that wait in its sockets when it wakes, so the host itself may go back.
        """
        self.load.judge(self._changes(KEYS))
        revisions = {(name, value): revision for revision, name, value in self._changes(f"{KEYS_OF_DEFAULT}pushed-")}
        for name in PUSHED:
            values = [value for _, found, value in self.delivered.changes if found == name]
            order = [revisions[name, value] for value in values]
            assert order == sorted(order), f"{name} in the member went back to an earlier state: {values}, {order}"

    def _changes(self, prefix: str) -> list[Change]:
        query = f"SELECT revision, key, value FROM store_log WHERE key LIKE '{prefix}%' ORDER BY revision"
        return to_changes(self.postgres.execute(query, self.site.database))

    def report(self, what: str) -> None:
        times = ", ".join(f"{seconds:.1f}" for seconds in sorted(self.failovers_s))
        writes = len(self.load.history.acknowledged)
        resumed = sum(watcher.resumed for watcher in self.load.watchers)
        lost = sum(map(len, self.load.history.lost.values()))
        print(f"{what}: {writes} writes, {lost} without an answer, {resumed} watches resumed, failovers {times} s")
        for message, count in self.load.history.refused.most_common(5):
            print(f"  {count} times: {message[:160]}")


def _number(replica: Replica) -> int:
    return int(replica.name.rpartition("-")[2])


@contextlib.asynccontextmanager
async def a_trial(site: Site, what: str) -> AsyncIterator[Trial]:
    """Run all load during the block, and judge it afterwards."""
    trial = Trial(site)
    pushing = delivering = None
    try:
        await trial.leader()
        async with trial.load.running():
            status, found = await trial.member.request("GET", CONFIG_MAPS, timeout_s=PATIENT_S)
            assert status == 200
            trial.delivered = Watcher([trial.member], CONFIG_MAPS, int(found["metadata"]["resourceVersion"]))
            delivering = asyncio.create_task(trial.delivered.run())
            pushing = asyncio.create_task(trial.push())
            yield trial
            await trial.load.progress(10)
            pushing.cancel()
            await asyncio.gather(pushing, return_exceptions=True)
            await until(lambda: is_delivered(trial), "the last values in the member")
        await trial.judge()
        trial.report(what)
    except BaseException:
        for replica in site.replicas.replicas:
            print(f"--- the end of the log of {replica.name}\n{replica.log[-4000:]}")
        raise
    finally:
        for task in (pushing, delivering):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for api in (trial.member, *trial.load.apis):
            await api.close()


async def is_delivered(trial: Trial) -> bool:
    """Return whether the member has the host's state of all federated ConfigMaps."""
    found = []
    for api in (trial.load.apis[0], trial.member):
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            status, listed = await api.request("GET", CONFIG_MAPS)
            items = listed["items"] if status == 200 else ()
            found.append({o["metadata"]["name"]: o["data"] for o in items if o["metadata"]["name"] in PUSHED})
    return len(found) == 2 and len(found[0]) == len(PUSHED) and found[0] == found[1]


Fault = Callable[[Trial], Awaitable[None]]


async def kill_the_leader(trial: Trial) -> None:
    leader, other = await trial.leader()
    await trial.failover(lambda: leader.send(signal.SIGKILL), other)


async def stop_the_leader(trial: Trial) -> None:
    leader, other = await trial.leader()
    await trial.failover(lambda: leader.send(signal.SIGTERM), other)


async def kill_the_follower(trial: Trial) -> None:
    leader, other = await trial.leader()
    starts, leads_since, losses = other.starts, leader.starts, leader.log.count(LOST)
    other.send(signal.SIGKILL)

    async def is_back() -> bool:
        return other.starts > starts and await is_ready(trial.load.apis[_number(other)])

    await until(is_back, "the follower's return")
    # On a busy machine it may lose a short Lease meanwhile, and says so.
    assert leader.starts == leads_since or leader.log.count(LOST) > losses, "the leader stays"


async def pause_the_leader(trial: Trial) -> None:
    leader, other = await trial.leader()
    await trial.pause(leader, other, lambda: leader.send(signal.SIGSTOP))


async def pause_the_leader_in_a_transaction(trial: Trial) -> None:
    leader, other = await trial.leader()
    await trial.pause(leader, other, lambda: leader.arm(Step.INSERTED, signal.SIGSTOP))


async def wait_for_a_write(trial: Trial, replica: Replica) -> None:
    acknowledged = trial.load.history.acknowledged_by
    goal = acknowledged[replica.name] + 10

    async def reached() -> bool:
        return acknowledged[replica.name] >= goal

    await until(reached, f"writes at {replica.name}")


async def restart_postgres(trial: Trial) -> None:
    await trial.load.progress(1)
    await asyncio.to_thread(trial.postgres.halt)
    trial.postgres.start_again()


async def crash_postgres(trial: Trial) -> None:
    await trial.load.progress(1)
    await asyncio.to_thread(trial.postgres.halt, is_orderly=False)
    trial.postgres.start_again()


async def make_postgres_read_only(trial: Trial) -> None:
    await refuses(trial, lambda: trial.postgres.set_read_only(is_read_only=True), "read-only transaction")
    await asyncio.to_thread(trial.postgres.set_read_only, is_read_only=False)


async def fill_postgres(trial: Trial) -> None:
    rows = trial.postgres.execute("SELECT pg_relation_size('store_log')", trial.site.database)
    bytes_max = max(1 << 20, int(str(rows[0][0])))
    await refuses(trial, lambda: trial.postgres.limit_files(bytes_max), "could not extend file")
    await asyncio.to_thread(trial.postgres.limit_files, -1)


async def refuses(trial: Trial, cause: Callable[[], None], message: str) -> None:
    """Wait until writes are refused with a message, and that reads are answered meanwhile."""
    refused = trial.load.history.refused

    def count() -> int:
        return sum(number for text, number in refused.items() if message in text)

    before = count()
    await asyncio.to_thread(cause)

    async def is_refused() -> bool:
        return count() >= before + 10

    await until(is_refused, f"refusals with {message!r} in {refused}")


async def slow_down_postgres(trial: Trial) -> None:
    """Let each answer of the database take long for minutes of a Lease: no process ends for that."""
    starts = [replica.starts for replica in trial.site.replicas.replicas]
    trial.site.line.delay_s = SLOW_S
    try:
        await asyncio.sleep(max(20.0, PAUSE_S))
    finally:
        trial.site.line.delay_s = 0.0
    await trial.load.progress(5)
    assert [replica.starts for replica in trial.site.replicas.replicas] == starts


async def pause_postgres(trial: Trial) -> None:
    """Stop the database three times for longer than a Lease: it answers nobody, so the leader is not silent."""
    leader, other = await trial.leader()
    starts = [replica.starts for replica in trial.site.replicas.replicas]
    held_by = await holder(trial.load.apis[_number(other)])
    for _ in range(3):
        await asyncio.to_thread(trial.postgres.pause)
        try:
            await asyncio.sleep(max(8.0, PAUSE_S))
        finally:
            await asyncio.to_thread(trial.postgres.resume)
        await wait_for_a_write(trial, other)
        await trial.load.progress(5)
        assert await holder(trial.load.apis[_number(other)]) == held_by
    assert [replica.starts for replica in trial.site.replicas.replicas] == starts
    assert (await trial.leader())[0] is leader


async def pause_all(trial: Trial) -> None:
    """Pause all processes for longer than a Lease, as when their machine is suspended."""
    for replica in trial.site.replicas.replicas:
        replica.send(signal.SIGSTOP)
    try:
        await asyncio.sleep(max(8.0, PAUSE_S))
    finally:
        for replica in trial.site.replicas.replicas:
            replica.send(signal.SIGCONT)


async def throttle_all(trial: Trial) -> None:
    """Give all processes a fifth of the time, as a machine without CPU left does."""
    ends_s = time.monotonic() + max(15.0, PAUSE_S)
    while time.monotonic() < ends_s:
        for number, pause_s in ((signal.SIGSTOP, 0.4), (signal.SIGCONT, 0.1)):
            for replica in trial.site.replicas.replicas:
                replica.send(number)
            await asyncio.sleep(pause_s)


async def kill_at_each_step_of_a_commit(trial: Trial) -> None:
    """Kill one replica after the other in the middle of a commit."""
    for number, step in enumerate(Step):
        victim = trial.site.replicas.replicas[number % REPLICAS]
        starts = victim.starts
        victim.arm(step, signal.SIGKILL)

        async def is_back(victim: Replica = victim, starts: int = starts) -> bool:
            return victim.starts > starts and await is_ready(trial.load.apis[_number(victim)])

        await until(is_back, f"the return of {victim.name}, killed when it had {step}")


FAULTS: dict[str, Fault] = {
    "kill -9 of the leader": kill_the_leader,
    "pause of the leader in a transaction": pause_the_leader_in_a_transaction,
    "crash of PostgreSQL": crash_postgres,
    "PostgreSQL full": fill_postgres,
}
NIGHTLY: dict[str, Fault] = {
    "SIGTERM to the leader": stop_the_leader,
    "kill -9 of the follower": kill_the_follower,
    "pause of the leader": pause_the_leader,
    "kill -9 at each step of a commit": kill_at_each_step_of_a_commit,
    "restart of PostgreSQL": restart_postgres,
    "PostgreSQL read-only": make_postgres_read_only,
    "PostgreSQL slow": slow_down_postgres,
    "PostgreSQL paused": pause_postgres,
    "all processes paused": pause_all,
    "all processes slow": throttle_all,
}


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        *(pytest.param(what, fault, id=what) for what, fault in FAULTS.items()),
        *(pytest.param(what, fault, id=what, marks=pytest.mark.nightly) for what, fault in NIGHTLY.items()),
    ],
)
async def test_nothing_is_lost_or_doubled(site: Site, what: str, fault: Fault) -> None:
    async with a_trial(site, what) as trial:
        for _ in range(ROUNDS):
            await fault(trial)
            await trial.load.progress(5)
