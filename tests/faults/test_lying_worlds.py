"""Members that lie or are broken, by what users do meanwhile: what must hold during it, and afterwards.

Each cell begins from one converged federation: a Deployment with a ConfigMap that it needs, divided over three members. East
becomes a broken world, a user does something, time passes, and east is well again. After every step of time:

- nothing is lost: members keep their objects, except those that somebody deleted or moved (`deletions_have_a_reason`);
- nothing is doubled: the members run no more replicas than wanted, plus the surge of a rolling update;
- the merged status claims no replicas that the members did not run lately, and no rollout that is not complete;
- no reconcile fails, and east gets a bounded number of requests.

In time a user is told the cause. When the world is well again, everything converges, and `invariants.py` holds.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support import deceits
from tests.support.deceits import Deceit
from tests.support.invariants import violations_meanwhile
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import NAMES, Base, World, a_base, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object
from federation.client.session import HTTPOptions

LYING, LOST = "east", "north"
REPLICAS = 9
TOLERATION_S = 60
BROKEN_S = 90.0
"""How long the world is broken: longer than what is published late, shorter than what users would bear."""
STEP_S = 3.0
REQUESTS_MAX = 400
"""Requests to the broken member in that time, probes and watches included."""

_IDLE_S = HTTPOptions().watch_idle_timeout_s
_bases: list[Base] = []


async def _running() -> Base:
    """Return a federation that runs `web`; made once per process."""
    if not _bases:
        async with a_world_without_pods(seed=0, base=await a_base(*NAMES)) as world:
            await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(NAMES, 1)))
            await world.create(CONFIGMAPS, _settings())
            await world.create(DEPLOYMENTS, _app("web", REPLICAS))
            await world.until_available("web", REPLICAS)
            await world.settle()
            _bases.append(world.copy())
    return _bases[0]


def _settings() -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}


def _app(name: str, replicas: int) -> Object:
    deployment = a_deployment(name, replicas)
    deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return deployment


# -- what users do


class Operation:
    """What a user does, and how it looks when it is done."""

    name = ""
    is_written = True
    """Whether it needs a write in the broken member."""

    async def begin(self, world: World) -> None:
        """Do it."""

    async def is_done(self, world: World) -> bool:
        """Return whether host and members show it."""
        return await _runs(world, "web", REPLICAS)


class Create(Operation):
    name = "create"

    async def begin(self, world: World) -> None:
        await world.create(DEPLOYMENTS, _app("new", 6))

    async def is_done(self, world: World) -> bool:
        return await _runs(world, "new", 6) and await _runs(world, "web", REPLICAS)


class Scale(Operation):
    name = "scale"

    async def begin(self, world: World) -> None:
        await world.scale("web", 12)

    async def is_done(self, world: World) -> bool:
        return await _runs(world, "web", 12)


class NewImage(Operation):
    name = "new image"

    async def begin(self, world: World) -> None:
        containers = [{"name": "web", "image": "nginx:2", "envFrom": [{"configMapRef": {"name": "settings"}}]}]
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})

    async def is_done(self, world: World) -> bool:
        return await _runs(world, "web", REPLICAS, image="nginx:2")


class Delete(Operation):
    name = "delete"

    async def begin(self, world: World) -> None:
        await world.user.delete(DEPLOYMENTS, "web", "default")

    async def is_done(self, world: World) -> bool:
        return await world.find(DEPLOYMENTS, "web") is None and await world.replicas("web") == {}


class Failover(Operation):
    name = "failover"
    is_written = False

    async def begin(self, world: World) -> None:
        world.members[LOST].line.mode = "down"


class Restart(Operation):
    name = "restart"
    is_written = False

    async def begin(self, world: World) -> None:
        await world.restart()


OPERATIONS: list[Operation] = [Create(), Scale(), NewImage(), Delete(), Failover(), Restart()]


async def _runs(world: World, name: str, replicas: int, image: str = "nginx:") -> bool:
    found = {cluster: await member.find(DEPLOYMENTS, name) for cluster, member in world.members.items()}
    copies = [copy for copy in found.values() if copy is not None]
    source = await world.find(DEPLOYMENTS, name) or {"metadata": {}}
    status = source.get("status") or {}
    return (
        status.get("observedGeneration") == source["metadata"].get("generation")
        and sum(copy["spec"]["replicas"] for copy in copies) == replicas
        and all(image in _image(copy) for copy in copies)
        and status.get("availableReplicas") == replicas
    )


def _image(deployment: Object) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


# -- broken worlds


@dataclass
class Broken:
    """A way in which east is broken. `cause` is what a user must find, "" if everything works regardless."""

    name: str
    begin: Callable[[World], Awaitable[Any]]
    cause: str = ""
    causes: dict[str, str] = field(default_factory=dict)
    """Other causes, by the name of the operation."""
    end: Callable[[World], Awaitable[Any]] | None = None
    """What ends it besides `line.heal()`."""
    moves: bool = False
    """Whether the member's replicas may be replaced elsewhere."""
    late_s: float = 0.0
    """How late the merged status may be."""
    keeps_deleted: bool = False
    """Whether objects that were deleted are there again; they are reported and not removed."""
    begins_late: bool = False
    """Whether it breaks only after the user has done something, and the member has it."""

    def cause_of(self, operation: Operation) -> str:
        return self.causes.get(operation.name, self.cause if operation.is_written else "")


def _deceit(make: Callable[[], Deceit]) -> Callable[[World], Awaitable[None]]:
    async def begin(world: World) -> None:
        world.members[LYING].line.begin_deceit(make())

    return begin


def _lie(lie: str) -> Callable[[World], Awaitable[None]]:
    async def begin(world: World) -> None:
        line = world.members[LYING].line
        line.faults.lie = lie
        line.begin_deceit(Deceit())

    return begin


async def _rejects_credentials(world: World) -> None:
    line = world.members[LYING].line
    line.faults.begin(1.0, "401")
    line.begin_deceit(Deceit())


async def _is_silent(world: World) -> None:
    """Open watches report nothing any more, as behind a proxy that has forgotten them."""
    world.members[LYING].line.is_silent = True


async def _watches_end(world: World) -> None:
    await world.pass_time(_IDLE_S)


async def _is_slow(world: World) -> None:
    line = world.members[LYING].line
    line.delays_s = dict.fromkeys(("get", "list", "create", "patch", "delete", "watch", "raw"), 2.0)


async def _loses_answers(world: World) -> None:
    world.members[LYING].line.loses_answers = frozenset({"create", "patch", "delete"})


async def _answers_again(world: World) -> None:
    world.members[LYING].line.loses_answers = frozenset()


async def _flaps(world: World) -> None:
    line = world.members[LYING].line

    async def flap() -> None:
        while True:
            line.mode = "down"
            await world.clock.sleep(20)
            line.mode = "up"
            await world.clock.sleep(20)

    world.notes.append("east flaps")
    _flapping.append(asyncio.create_task(flap()))


_flapping: list[asyncio.Task[None]] = []


async def _stops_flapping(world: World) -> None:  # every end has the same arguments
    while _flapping:
        task = _flapping.pop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _loses_namespace(world: World) -> None:
    """Somebody deletes what is in the namespace; the namespace itself cannot go."""
    admin = world.members[LYING].admin
    for resource, name in ((DEPLOYMENTS, "web"), (CONFIGMAPS, "settings")):
        await admin.delete(resource, name, "default")


async def _is_restored(world: World) -> None:
    await world.replace_member(LYING, _bases[0].stores[LYING])


async def _is_another_cluster(world: World) -> None:
    await world.replace_member(LYING, None)


async def _is_joined_again(world: World) -> None:
    await world.unjoin_by_force(LYING)
    await world.until_gone(FEDERATED_CLUSTERS, LYING)
    await world.join(LYING)


WORLDS = [
    Broken("empty lists", _lie("empty")),
    Broken("partial lists", _lie("partial")),
    Broken("stale lists", _lie("stale")),
    Broken("objects of other namespaces", _deceit(deceits.OtherNamespaces)),
    Broken("ignored selectors", _deceit(deceits.ForgottenSelectors)),
    Broken("duplicates", _deceit(deceits.Duplicates)),
    Broken("older revisions", _deceit(deceits.OldRevisions)),
    Broken("refuses writes", _deceit(deceits.refuses_by_policy), cause="east.*not today"),
    Broken("finds writes invalid", _deceit(deceits.refuses_as_invalid), cause="east.*not here"),
    Broken("mutates writes", _deceit(deceits.Mutates)),
    Broken("reverts writes", _deceit(deceits.Reverts), cause="east.*operator", causes={"delete": ""}),
    Broken("forgets writes", _deceit(deceits.Forgets), cause="east"),
    Broken("answers with other objects", _deceit(deceits.WrongObjects), cause="east"),
    Broken(
        "impossible statuses",
        _deceit(deceits.ImpossibleStatus),
        cause="east reports impossible values",
        causes={"delete": ""},
    ),
    Broken(
        "malformed objects",
        _deceit(deceits.Malformed),
        cause="deployments.apps that are not Kubernetes objects",
        late_s=_IDLE_S,
    ),
    Broken("no nodes", _deceit(deceits.WithoutNodes)),
    Broken("no kinds", _deceit(deceits.WithoutKinds)),
    Broken("no apps group", _deceit(lambda: deceits.WithoutGroup("apps")), moves=True),
    Broken("rejects credentials", _rejects_credentials, cause="east.*rejects our credentials", moves=True),
    Broken("silent watches", _is_silent, end=_watches_end, late_s=_IDLE_S),
    Broken("slow", _is_slow),
    Broken("lost answers", _loses_answers, end=_answers_again),
    Broken("flaps", _flaps, end=_stops_flapping),
    Broken("loses its objects", _loses_namespace),
    Broken("restored from a backup", _is_restored),
    Broken("restored from a backup later", _is_restored, begins_late=True, keeps_deleted=True),
    Broken(
        "another cluster",
        _is_another_cluster,
        cause="is not the cluster that joined",
        end=_is_joined_again,
        moves=True,
    ),
]


# -- what must hold meanwhile


class Watcher:
    """Looks at host and members after every step of time."""

    def __init__(self, world: World, broken: Broken, operation: Operation) -> None:
        self._world, self._broken, self._operation = world, broken, operation
        self._ran: dict[str, list[int]] = {}
        """The replicas that all members together had available, by Deployment and step."""
        self.told = ""

    async def look(self) -> None:
        """Check what must hold at every moment."""
        found = await violations_meanwhile(self._world, {})
        for deployment in (await self._world.user.list(DEPLOYMENTS)).items:
            found += await self._judge(deployment)
        self.told += await told(self._world)
        assert not found, "\n".join(found)

    async def _judge(self, deployment: Object) -> list[str]:
        name, wanted = deployment["metadata"]["name"], deployment["spec"]["replicas"]
        copies = {c: await m.find(DEPLOYMENTS, name) for c, m in self._world.members.items()}
        copies = {cluster: copy for cluster, copy in copies.items() if copy is not None}
        found = []
        runs = {cluster: copy["spec"]["replicas"] for cluster, copy in copies.items()}
        surge = max(1, wanted // 4)
        if sum(runs.values()) > max(wanted, REPLICAS) + surge and not self._may_move:
            found.append(f"{name} wants {wanted} replicas, the members run {runs}")
        available = sum((copy.get("status") or {}).get("availableReplicas", 0) for copy in copies.values())
        lately = self._ran.setdefault(name, [])
        lately.append(available)
        status = deployment.get("status") or {}
        claimed, seen = status.get("availableReplicas", 0), lately[-max(6, int(self._broken.late_s / STEP_S)) :]
        if claimed > max(seen) and not _is_marked_as_stale(status):
            found.append(f"{name} claims {claimed} available replicas, its members have {seen}")
        if _claims_a_rollout(deployment):
            image = _image(deployment)
            others = {cluster: _image(copy) for cluster, copy in copies.items() if not _image(copy).endswith(image)}
            if others:
                found.append(f"{name} claims that all replicas have {image}, the members have {others}")
        return found

    @property
    def _may_move(self) -> bool:
        return self._broken.moves or self._operation.name == "failover"


def _is_marked_as_stale(status: Object) -> bool:
    """Return whether the status says that it counts what is not known any more."""
    return conditions.is_true(status.get("conditions"), names.STATUS_STALE)


def _claims_a_rollout(deployment: Object) -> bool:
    """Return whether `kubectl rollout status` would return."""
    status, wanted = deployment.get("status") or {}, deployment["spec"]["replicas"]
    return (
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) >= wanted
        and status.get("replicas", 0) <= status.get("updatedReplicas", 0)
        and status.get("availableReplicas", 0) >= status.get("updatedReplicas", 0)
    )


async def told(world: World) -> str:
    """Return what users are told: conditions, statuses by cluster, and events."""
    lines = [f"event {reason}: {message}" for reason, message in await world.events()]
    for obj in (await world.user.list(FEDERATED_OBJECTS)).items:
        status, name = obj.get("status") or {}, obj["metadata"]["name"]
        lines += [f"{name} {_text_of(condition)}" for condition in status.get("conditions") or ()]
        lines += [f"{name} {c['cluster']} {c['status']} {c.get('message', '')}" for c in status.get("clusters") or ()]
    for cluster in (await world.user.list(FEDERATED_CLUSTERS)).items:
        held = (cluster.get("status") or {}).get("conditions") or ()
        lines += [f"{cluster['metadata']['name']} {_text_of(condition)}" for condition in held]
    return "\n".join(lines) + "\n"


def _text_of(condition: Object) -> str:
    return f"{condition['type']}={condition['status']} {condition.get('reason')}: {condition.get('message', '')}"


async def _live_through(broken: Broken, operation: Operation) -> None:
    async with a_world_without_pods(base=await _running(), toleration_s=TOLERATION_S) as world:
        line = world.members[LYING].line
        line.calls.clear()
        watcher = Watcher(world, broken, operation)
        await watcher.look()
        if not broken.begins_late:
            await broken.begin(world)
            await world.pass_time(1)
        await operation.begin(world)
        if broken.begins_late:
            await world.pass_time(STEP_S)
            await broken.begin(world)
        try:
            for _ in range(int(BROKEN_S / STEP_S)):
                await world.pass_time(STEP_S)
                await watcher.look()
            assert len(line.calls) <= REQUESTS_MAX, f"{len(line.calls)} requests to {LYING}"
            cause = broken.cause_of(operation)
            assert re.search(cause, watcher.told), f"{cause!r} is not told:\n{await told(world)}"
        finally:
            line.heal()
            if broken.end is not None:
                await broken.end(world)
        line.heal()
        world.members[LOST].line.heal()
        await world.pass_time(15)
        await world.until_ready(*NAMES)
        if broken.keeps_deleted and isinstance(operation, Delete):
            await world.until_equal(lambda: _reported(world), {(LYING, "web"), (LYING, "settings")})
        else:
            await world.until(lambda: operation.is_done(world), f"{operation.name} is done")
            await world.until(lambda: _is_delivered(world), "everything is delivered")


async def _is_delivered(world: World) -> bool:
    """Return whether nothing waits for a pause after an error, which may be longer than a world has to be quiet."""
    held = [obj.get("status") or {} for obj in (await world.user.list(FEDERATED_OBJECTS)).items]
    return all(cluster["status"] == "OK" for status in held for cluster in status.get("clusters") or ())


async def _reported(world: World) -> set[tuple[str, str]]:
    found = [leftover["spec"] for leftover in (await world.user.list(LEFTOVERS)).items]
    return {(spec["cluster"], spec["name"]) for spec in found}


ALWAYS = {("empty lists", "delete")}
"""Cells in `make test` besides: what a deletion must ask a member about that hides its objects."""


def _cells() -> Iterator[Any]:
    """Yield all cells. Each world is in `make test` with one operation, another one for the next world."""
    for row, broken in enumerate(WORLDS):
        for column, operation in enumerate(OPERATIONS):
            name, marks = f"{broken.name}-{operation.name}", []
            if column != row % len(OPERATIONS) and (broken.name, operation.name) not in ALWAYS:
                marks.append(pytest.mark.nightly)
            yield pytest.param(broken, operation, id=name, marks=marks)


@pytest.mark.parametrize(("broken", "operation"), list(_cells()))
async def test_every_operation_in_every_broken_world(broken: Broken, operation: Operation) -> None:
    await _live_through(broken, operation)
