"""Whatever users, members and lines do, in whatever order: once all is calm again, the invariants hold.

Each seed is one history of a federation, drawn from the steps below: Deployments come, grow, change and go; policies
move and vanish; administrators meddle in members; lines break and hang; the control plane is stopped anywhere and
started again. A failure prints the seed and the steps; the same seed gives the same history.
"""

import random
from collections.abc import Awaitable, Callable

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import NAMES, World, a_world

from federation.api.resources import DEPLOYMENTS, PROPAGATION_POLICIES
from federation.base.errors import ApiError, NotFound

STEPS = 40
APPS = ("app", "blog", "cart", "desk")


class History:
    """One drawn history over a world."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self.told: list[str] = []

    async def run(self) -> None:
        """Draw and do all steps, then repair what is broken."""
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
            (3, self._restart),
            (2, self._stop_and_start),
            (6, self._wait),
        ]
        choices, weights = [step for _, step in steps], [weight for weight, _ in steps]
        await self._create()
        await self._move_policy()
        for step in self._random.choices(choices, weights, k=STEPS):
            try:
                did = await step()
            except ApiError as refusal:
                did = f"{step.__name__} was refused: {refusal}"
            self.told.append(f"{self._world.clock.monotonic():.2f} {did}")
            if self._random.random() < 0.7:
                await self._world.pass_time(self._random.choice((0.1, 0.1, 0.5, 2.0)))
        for member in self._world.members.values():
            member.line.mend()
        await self._move_policy()  # without any policy nothing could be divided anew
        await self._world.pass_time(60)  # members become ready, pauses end

    def _app(self) -> str:
        return self._random.choice(APPS)

    def _member(self) -> str:
        return self._random.choice(NAMES)

    async def _create(self) -> str:
        app, replicas = self._app(), self._random.randrange(12)
        await self._world.create(DEPLOYMENTS, a_deployment(app, replicas))
        return f"create {app} with {replicas}"

    async def _scale(self) -> str:
        app, replicas = self._app(), self._random.randrange(12)
        await self._world.scale(app, replicas)
        return f"scale {app} to {replicas}"

    async def _set_image(self) -> str:
        app, image = self._app(), f"nginx:1.{self._random.randrange(30)}"
        containers = [{"name": "web", "image": image}]
        await self._world.merge(DEPLOYMENTS, app, {"spec": {"template": {"spec": {"containers": containers}}}})
        return f"set image of {app} to {image}"

    async def _delete(self) -> str:
        app = self._app()
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
        app, member = self._app(), self._member()
        await self._world.members[member].merge(DEPLOYMENTS, app, {"spec": {"replicas": 99}})
        return f"scale {app} in {member} by hand"

    async def _delete_in_member(self) -> str:
        app, member = self._app(), self._member()
        await self._world.members[member].admin.delete(DEPLOYMENTS, app, "default")
        return f"delete {app} in {member} by hand"

    async def _break_line(self) -> str:
        member, mode = self._member(), self._random.choice(("down", "hang"))
        self._world.members[member].line.mode = mode
        return f"line to {member}: {mode}"

    async def _mend_line(self) -> str:
        member = self._member()
        self._world.members[member].line.mend()
        return f"line to {member}: up"

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
            world.notes += history.told


@pytest.mark.parametrize("seed", range(1, 13))
async def test_all_is_well_after_any_history(seed: int) -> None:
    await _live(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
async def test_all_is_well_after_many_histories(seed: int) -> None:
    await _live(seed)
