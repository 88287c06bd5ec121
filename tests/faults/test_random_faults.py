"""Random histories of users' changes and faults: after all faults are repaired, the invariants hold.

Each seed gives one history, drawn from the steps below: Deployments are created, scaled, changed and deleted; policies
change and are deleted; members are changed by hand; connections break and hang; the control plane stops anywhere and
restarts. A failure prints the seed and the steps; the same seed gives the same history.
"""

import random
from collections.abc import Awaitable, Callable

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import NAMES, World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.client.client import Client

STEPS = 60
APPS = ("app", "blog", "cart", "desk")


class History:
    """One random history of a federation."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
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
            (2, self._override),
            (2, self._leave),
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
        for step in self._random.choices(choices, weights, k=STEPS):
            try:
                did = await step()
            except ApiError as refusal:
                did = f"{step.__name__} was refused: {refusal}"
            self.trace.append(f"{self._world.clock.monotonic():.2f} {did}")
            if self._random.random() < 0.7:
                await self._world.pass_time(self._random.choice((0.1, 0.1, 0.5, 2.0)))
        for member in self._world.members.values():
            member.line.mend()
        for name in NAMES:
            await self._return(name)
        await self._move_policy()  # without a policy nothing would be scheduled
        await self._world.pass_time(60)  # members become ready, backoffs end

    async def _app(self, client: Client | None = None) -> str:
        """Return the name of an existing Deployment; any name when there is none."""
        held = (await (client or self._world.user).list(DEPLOYMENTS, "default")).items
        return self._random.choice(sorted(obj["metadata"]["name"] for obj in held) or APPS)

    def _member(self) -> str:
        return self._random.choice(NAMES)

    async def _create(self) -> str:
        held = {obj["metadata"]["name"] for obj in (await self._world.user.list(DEPLOYMENTS)).items}
        app, replicas = self._random.choice(sorted(set(APPS) - held) or APPS), self._random.randrange(12)
        await self._world.create(DEPLOYMENTS, a_deployment(app, replicas))
        return f"create {app} with {replicas}"

    async def _scale(self) -> str:
        app, replicas = await self._app(), self._random.randrange(12)
        await self._world.scale(app, replicas)
        return f"scale {app} to {replicas}"

    async def _set_image(self) -> str:
        app, image = await self._app(), f"nginx:1.{self._random.randrange(30)}"
        containers = [{"name": "web", "image": image}]
        await self._world.merge(DEPLOYMENTS, app, {"spec": {"template": {"spec": {"containers": containers}}}})
        return f"set image of {app} to {image}"

    async def _delete(self) -> str:
        app = await self._app()
        await self._world.user.delete(DEPLOYMENTS, app, "default")
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
        self._world.members[member].line.mend()
        return f"line to {member}: up"

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

    async def _come_back(self) -> str:
        away = [name for name in NAMES if await self._world.find(FEDERATED_CLUSTERS, name) is None]
        for name in away:
            await self._world.join(name)
        return f"join {away}"

    async def _return(self, name: str) -> None:
        """Join the member again."""
        cluster = await self._world.find(FEDERATED_CLUSTERS, name)
        if cluster is not None and cluster["metadata"].get("deletionTimestamp"):
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


async def _live(seed: int) -> None:
    async with a_world(seed=seed) as world:
        history = History(world, seed)
        try:
            await history.run()
        finally:
            world.notes += history.trace


@pytest.mark.parametrize("seed", range(1, 13))
async def test_invariants_hold_after_a_random_history(seed: int) -> None:
    await _live(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
async def test_invariants_hold_after_many_random_histories(seed: int) -> None:
    await _live(seed)
