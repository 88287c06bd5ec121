"""Random histories of users' changes and faults: the invariants hold after each step, and after all faults are repaired.

Each seed gives one history, drawn from the steps below. Users create, scale, change and delete Deployments; policies
change and are deleted; members are changed by hand, leave and come back. Meanwhile connections break and hang, members
answer errors, are slow, lie in lists, drop watches, reject credentials, have wrong clocks, are restored from old
backups or replaced by empty clusters, and the control plane stops anywhere and restarts.

A failure prints the seed, the steps and how to run that seed alone. The seeds of `make test`, 20 short and 4 long ones,
reach 98.6 % of the branches in controllers, dispatch and runtime that 120 and 12 reach. `FAULT_SEEDS=5000` runs as many
short ones, and a fifth as many long ones.
"""

import os
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.support.faults import LIES, STORMS, StoreCopy, copy_of
from tests.support.invariants import changes_of_a_restart, fields_have_one_owner, violations, violations_meanwhile
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import NAMES, World, a_base, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, ClusterUnreachable, Expired, InternalError, NotFound, Unauthorized
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.client.client import Client
from federation.controllers.cluster.names import REASON_CLUSTER_UNJOINABLE

SEEDS = int(os.environ.get("FAULT_SEEDS", "20"))
LONG_SEEDS = SEEDS // 5
SEED = os.environ.get("FAULT_SEED", "")
STEPS = 60
STEPS_OF_SHORT_HISTORIES = 12
APPS = ("app", "blog", "cart", "desk")
SLOW_VERBS = (("list",), ("get",), ("patch", "create", "delete"), ("list", "get", "watch", "raw", "patch", "delete"))


class History:
    """One random history of a federation."""

    def __init__(self, world: World, seed: int, steps: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._steps = steps
        self._backups: dict[str, StoreCopy] = {}
        self._acknowledged: dict[str, Object] = {}
        """The specs of the Deployments that users created and did not delete."""
        self.trace: list[str] = []

    async def run(self) -> None:
        """Perform random steps, then repair all faults."""
        steps: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (6, self._create),
            (6, self._scale),
            (3, self._set_image),
            (4, self._delete),
            (4, self._move_policy),
            (1, self._drop_policy),
            (3, self._meddle),
            (2, self._delete_in_member),
            (4, self._break_line),
            (4, self._mend_line),
            (4, self._storm),
            (2, self._slow_down),
            (3, self._lie),
            (2, self._drop_watches),
            (2, self._expire_credentials),
            (2, self._skew_clock),
            (2, self._back_up),
            (2, self._restore),
            (1, self._wipe),
            (2, self._override),
            (2, self._leave),
            (1, self._leave_by_force),
            (3, self._come_back),
            (2, self._namespace),
            (3, self._restart),
            (2, self._stop_and_start),
            (4, self._wait),
        ]
        choices, weights = [step for _, step in steps], [weight for weight, _ in steps]
        await self._move_policy()
        for _ in APPS[1:]:
            await self._create()
        for step in self._random.choices(choices, weights, k=self._steps):
            try:
                did = await step()
            except ApiError as refusal:
                did = f"{step.__name__} was refused: {refusal}"
            self.trace.append(f"{self._world.clock.monotonic():.2f} {did}")
            if self._random.random() < 0.7:
                await self._world.pass_time(self._random.choice((0.1, 0.1, 0.5, 2.0)))
            await self._check()
        await self._repair()

    async def _check(self) -> None:
        found = await violations_meanwhile(self._world, self._acknowledged)
        assert not found, "\n".join(found)

    async def _repair(self) -> None:
        """End all faults; do what administrators do about members that are other clusters now."""
        self.trace.append(f"{self._world.clock.monotonic():.2f} all faults are repaired")
        for member in self._world.members.values():
            member.line.heal()
            member.clock.offset_s = 0.0
        self._world.plane_clock.offset_s = 0.0
        await self._world.pass_time(15)  # monitors see the truth again
        for name in NAMES:
            await self._return(name)
        await self._move_policy()  # without a policy nothing would be scheduled
        await self._world.pass_time(60)  # members become ready, backoffs end
        await self._world.settle()
        await self._check()

    def _acknowledge(self, app: str, deployment: Object) -> None:
        if not deployment["metadata"].get("deletionTimestamp"):
            self._acknowledged[app] = deployment["spec"]

    async def _app(self, client: Client | None = None) -> str:
        """Return the name of an existing Deployment; any name when there is none."""
        held = (await (client or self._world.user).list(DEPLOYMENTS, "default")).items
        return self._random.choice(sorted(obj["metadata"]["name"] for obj in held) or APPS)

    def _member(self) -> str:
        return self._random.choice(NAMES)

    async def _create(self) -> str:
        held = {obj["metadata"]["name"] for obj in (await self._world.user.list(DEPLOYMENTS)).items}
        app, replicas = self._random.choice(sorted(set(APPS) - held) or APPS), self._random.randrange(12)
        self._acknowledge(app, await self._world.create(DEPLOYMENTS, a_deployment(app, replicas)))
        return f"create {app} with {replicas}"

    async def _scale(self) -> str:
        app, replicas = await self._app(), self._random.randrange(12)
        self._acknowledge(app, await self._world.scale(app, replicas))
        return f"scale {app} to {replicas}"

    async def _set_image(self) -> str:
        app, image = await self._app(), f"nginx:1.{self._random.randrange(30)}"
        containers = [{"name": "web", "image": image}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        self._acknowledge(app, await self._world.merge(DEPLOYMENTS, app, patch))
        return f"set image of {app} to {image}"

    async def _delete(self) -> str:
        app = await self._app()
        await self._world.user.delete(DEPLOYMENTS, app, "default")
        self._acknowledged.pop(app, None)
        return f"delete {app}"

    async def _move_policy(self) -> str:
        clusters = self._random.sample(NAMES, self._random.randint(1, 3))
        policy = a_policy({name: self._random.randint(1, 4) for name in sorted(clusters)})
        try:
            await self._world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        except NotFound:
            await self._world.create(PROPAGATION_POLICIES, policy)
        return f"place in {sorted(clusters)}"

    async def _drop_policy(self) -> str:
        await self._world.user.delete(PROPAGATION_POLICIES, "divide", "default")
        return "delete the policy"

    async def _meddle(self) -> str:
        member = self._member()
        app = await self._app(self._world.members[member].admin)
        await self._world.members[member].merge(DEPLOYMENTS, app, {"spec": {"replicas": 99}})
        return f"scale {app} in {member} by hand"

    async def _delete_in_member(self) -> str:
        member = self._member()
        app = await self._app(self._world.members[member].admin)
        await self._world.members[member].admin.delete(DEPLOYMENTS, app, "default")
        return f"delete {app} in {member} by hand"

    async def _break_line(self) -> str:
        member, mode = self._member(), self._random.choice(("down", "hang"))
        line = self._world.members[member].line
        line.mode, line.is_late = mode, self._random.random() < 0.5
        return f"line to {member}: {mode}{', writes come late' * line.is_late}"

    async def _mend_line(self) -> str:
        broken = [name for name in NAMES if self._world.members[name].line.mode != "up"]
        member = self._random.choice(broken or NAMES)
        self._world.members[member].line.heal()
        return f"line to {member}: up"

    async def _storm(self) -> str:
        """Let a member fail a share of its requests."""
        member, share = self._member(), self._random.choice((0.2, 0.5, 0.9))
        storms = self._random.sample(STORMS, self._random.randint(1, 2))
        self._world.members[member].line.faults.begin(share, *storms)
        return f"{member} answers {share:.0%} of the requests with {storms}"

    async def _slow_down(self) -> str:
        member, verbs = self._member(), self._random.choice(SLOW_VERBS)
        delay_s = self._random.choice((0.2, 2.0, 9.0))
        self._world.members[member].line.delays_s.update(dict.fromkeys(verbs, delay_s))
        return f"{member} needs {delay_s} s to {'/'.join(verbs)}"

    async def _lie(self) -> str:
        """Let a member answer wrong lists, to caches that must list again."""
        member, lie = self._member(), self._random.choice(LIES)
        line = self._world.members[member].line
        line.faults.lie = lie
        line.drop_watches(Expired("too old resource version"))
        return f"the lists of {member} are {lie}"

    async def _drop_watches(self) -> str:
        member = self._member()
        error = self._random.choice((ClusterUnreachable("reset"), Expired("too old"), InternalError("etcd")))
        self._world.members[member].line.drop_watches(error)
        return f"watches of {member} end: {error!r}"

    async def _expire_credentials(self) -> str:
        member = self._member()
        line = self._world.members[member].line
        line.faults.begin(1.0, "401")
        line.drop_watches(Unauthorized("the token has expired"))
        return f"{member} rejects the credentials"

    async def _skew_clock(self) -> str:
        whose = self._random.choice((*NAMES, "control plane"))
        clock = self._world.members[whose].clock if whose in NAMES else self._world.plane_clock
        clock.offset_s = self._random.choice((-86400.0, -90.0, 0.0, 90.0, 86400.0))
        return f"the clock of {whose} is {clock.offset_s:+g} s off"

    async def _back_up(self) -> str:
        member = self._member()
        self._backups[member] = copy_of(self._world.members[member].store)
        return f"back up {member}"

    async def _restore(self) -> str:
        if not self._backups:
            return "there is no backup"
        member = self._random.choice(sorted(self._backups))
        await self._world.replace_member(member, self._backups[member])
        return f"restore {member} from its backup"

    async def _wipe(self) -> str:
        member = self._member()
        await self._world.replace_member(member, None)
        self._backups.pop(member, None)
        return f"an empty cluster is at the address of {member}"

    async def _override(self) -> str:
        member, seconds = self._member(), self._random.randrange(1, 5)
        policy = an_override(member, "/spec/minReadySeconds", seconds)
        try:
            await self._world.merge(OVERRIDE_POLICIES, "special", {"spec": policy["spec"]})
        except NotFound:
            await self._world.create(OVERRIDE_POLICIES, policy)
        return f"override minReadySeconds in {member} with {seconds}"

    async def _leave(self) -> str:
        """Remove a member and our objects in it; an unreachable member can only leave later."""
        member = self._member()
        mark = {"metadata": {"annotations": {names.CASCADING_DELETE: "true"}}}
        await self._world.merge(FEDERATED_CLUSTERS, member, mark)
        await self._world.user.delete(FEDERATED_CLUSTERS, member)
        return f"unjoin {member}"

    async def _leave_by_force(self) -> str:
        member = self._member()
        await self._world.unjoin_by_force(member)
        return f"unjoin {member} by force"

    async def _come_back(self) -> str:
        away = [name for name in NAMES if await self._world.find(FEDERATED_CLUSTERS, name) is None]
        for name in away:
            await self._world.join(name)
        return f"join {away}"

    async def _return(self, name: str) -> None:
        """Join the member again, unless it is joined and still the same cluster."""
        cluster = await self._world.find(FEDERATED_CLUSTERS, name)
        if cluster is not None and _is_another(cluster):
            await self._world.unjoin_by_force(name)
            self.trace.append(f"{self._world.clock.monotonic():.2f} unjoin {name} by force: it is another cluster")
        if cluster is not None and (cluster["metadata"].get("deletionTimestamp") or _is_another(cluster)):
            await self._world.until_gone(FEDERATED_CLUSTERS, name)
            cluster = None
        if cluster is None:
            await self._world.join(name)
        await self._world.until_ready(name)

    async def _namespace(self) -> str:
        """Create the namespace, or delete it if it exists."""
        name = self._random.choice(("shop", "stock"))
        if await self._world.find(NAMESPACES, name) is not None:
            await self._world.user.delete(NAMESPACES, name)
            return f"delete namespace {name}"
        await self._world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return f"create namespace {name}"

    async def _restart(self) -> str:
        await self._world.restart()
        return "restart"

    async def _stop_and_start(self) -> str:
        await self._world.stop()
        await self._world.pass_time(self._random.choice((0.5, 5.0)))
        await self._world.restart()
        return "start after a while"

    async def _wait(self) -> str:
        seconds = self._random.choice((1, 5, 40))
        await self._world.pass_time(seconds)
        return f"{seconds} s passed"


def _is_another(cluster: Object) -> bool:
    """Return whether an administrator must join the cluster again."""
    held = (cluster.get("status") or {}).get("conditions")
    ready, joined = conditions.find(held, names.CLUSTER_READY), conditions.find(held, names.CLUSTER_JOINED)
    return (ready or {}).get("reason") == names.REASON_IDENTITY_MISMATCH or (joined or {}).get(
        "reason"
    ) == REASON_CLUSTER_UNJOINABLE


async def _live(seed: int, steps: int, *, has_workloads: bool) -> None:
    base = None if has_workloads else await a_base(*NAMES)
    async with a_world(seed=seed, base=base, has_workloads=has_workloads, has_reports=True) as world:
        history = History(world, seed, steps)
        how = f"run this seed alone: FAULT_SEED={seed} python -m pytest tests/faults/test_random_faults.py"
        try:
            await history.run()
            found = await violations(world) + [line async for line in fields_have_one_owner(world)]
            found += await changes_of_a_restart(world)
            assert not found, "\n".join(found)
        finally:
            world.notes = [how, *history.trace]


@pytest.mark.parametrize("seed", [int(SEED)] if SEED else range(1, SEEDS + 1))
async def test_invariants_hold_in_a_short_random_history(seed: int) -> None:
    await _live(seed, STEPS_OF_SHORT_HISTORIES, has_workloads=False)


@pytest.mark.slow("a history of several virtual minutes with pods")
@pytest.mark.parametrize("seed", [int(SEED)] if SEED else range(1, LONG_SEEDS + 1))
async def test_invariants_hold_in_a_long_random_history_with_workloads(seed: int) -> None:
    await _live(seed, STEPS, has_workloads=True)
