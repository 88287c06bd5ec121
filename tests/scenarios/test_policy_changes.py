"""A change of a policy reaches its objects in waves; a bad one returns, and objects that appear meanwhile are spared."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.prometheus import CountedRequests
from tests.support.world import World, a_world

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.simulator.controllers.names import SIMULATOR_READY

OBJECTS = 8
WAVES: list[Object] = [
    {"name": "few", "objects": 2, "gate": {"soakSeconds": 20}, "timeoutSeconds": 60},
    {"name": "more", "objects": 3, "pause": True, "timeoutSeconds": 60},
]
MOVABLE: Object = {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {"policyContentChanged": True}}
IMAGE = "/spec/template/spec/containers/0/image"
NEVER_READY = {SIMULATOR_READY: "false"}
EAST, WEST = [{"cluster": "east"}], [{"cluster": "west"}]


def rollout(*waves: Object, **more: Any) -> Object:
    return {"changeRollout": {"waves": list(waves) or WAVES, **more}}


async def begin(world: World, **spec: Any) -> None:
    policy = a_policy({}, placement=EAST, reschedulePolicy=MOVABLE, **(rollout() | spec))
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(OBJECTS):
        await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", 1))
    await world.until_equal(lambda: placed(world), {"east": OBJECTS})
    await world.settle()


async def placed(world: World) -> Counter[str]:
    """Return how many workloads have their replicas in each cluster."""
    items = (await world.user.list(DEPLOYMENTS, "default")).items
    names = sorted(each["metadata"]["name"] for each in items)
    return Counter([cluster for name in names for cluster in await world.replicas(name)])


async def record(world: World, name: str = "divide") -> Any:
    policy = await world.find(PROPAGATION_POLICIES, name)
    assert policy is not None
    return policy["status"]["changeRollout"]


async def state(world: World) -> tuple[str, str]:
    found = await record(world)
    started = [wave["name"] for wave in found.get("waves") or () if wave.get("bound")]
    return found["state"], started[-1] if started else ""


async def test_a_change_reaches_its_objects_in_waves_and_a_restart_goes_on() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        assert await state(world) == ("Complete", "")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": WEST}})
        await world.until_equal(lambda: placed(world), {"east": OBJECTS - 2, "west": 2})
        await world.restart()
        await world.pass_time(60)
        assert await placed(world) == {"east": OBJECTS - 2, "west": 2}, "the second wave waits for approval"
        found = await record(world)
        assert found["message"] == "wave more waits for approval"
        # An object that appears now gets the policy of the last wave that succeeded.
        await world.create(DEPLOYMENTS, a_deployment("late", 1))
        await world.until_replicas("late", {"west": 1})
        approved = {"approvedWave": {"revision": found["revision"], "wave": "more"}}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"changeRollout": approved}})
        await world.until_equal(lambda: state(world), ("Complete", ""))
        assert await placed(world) == {"west": OBJECTS + 1}
        assert (await record(world))["earlier"]["spec"]["placement"] == WEST


async def test_a_bad_change_returns_and_new_objects_never_see_it() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "nowhere"}]}})
        await world.until_equal(lambda: state(world), ("Progressing", "few"))
        await world.create(DEPLOYMENTS, a_deployment("early", 1))
        await world.until_replicas("early", {"east": 1})
        await world.until_equal(lambda: state(world), ("RolledBack", "few"))
        assert "did not hold for 60 s" in (await record(world))["reason"]
        await world.create(DEPLOYMENTS, a_deployment("late", 1))
        await world.until_replicas("late", {"east": 1})
        await world.restart()
        await world.settle()
        assert await placed(world) == {"east": OBJECTS + 2}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": EAST}})
        await world.until_equal(lambda: state(world), ("Complete", ""))


async def test_an_override_that_breaks_pods_stops_after_the_first_objects() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world, changeRollout=None)
        override = an_override("east", IMAGE, "nginx:1.28")
        override["spec"] |= rollout({"name": "few", "objects": 3, "timeoutSeconds": 60})
        await world.create(OVERRIDE_POLICIES, override)
        await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS})
        await world.settle()
        broken = an_override("east", IMAGE, "nginx:broken")["spec"]["overrideRules"]
        never_ready = {"path": "/spec/template/metadata/annotations", "operator": "add", "value": NEVER_READY}
        broken[0]["overriders"]["jsonpatch"].append(never_ready)
        await world.merge(OVERRIDE_POLICIES, "special", {"spec": {"overrideRules": broken}})

        await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS - 3, "nginx:broken": 3})
        await world.until_equal(lambda: overridden(world), "RolledBack")
        assert await images(world) == {"nginx:1.28": OBJECTS}


async def overridden(world: World) -> str:
    policy = await world.find(OVERRIDE_POLICIES, "special")
    assert policy is not None
    return str(policy["status"]["changeRollout"]["state"])


async def images(world: World) -> Counter[str]:
    items = (await world.members["east"].admin.list(DEPLOYMENTS, "default")).items
    return Counter(each["spec"]["template"]["spec"]["containers"][0]["image"] for each in items)


async def test_a_change_that_raises_errors_returns_and_a_clean_one_passes(tmp_path: Path) -> None:
    """An override raises the share of bad requests in the objects of the first wave, which the others do not have."""
    path = tmp_path / "sources.yaml"
    path.write_text("sources: {main: {url: 'https://prometheus.example.com'}}\n")
    errors = {"name": "errors", "source": "main", "errors": {"metric": "requests_total", "bad": {"code": "5.."}}}
    few = {"name": "few", "objects": 2, "gate": {"soakSeconds": 60, "objectives": [errors]}}
    metered = Metered()
    async with a_world(members=("east", "west"), gates=metered, metric_sources_file=str(path)) as world:
        await begin(world, changeRollout=None)
        override = an_override("east", IMAGE, "nginx:1.28")
        override["spec"] |= rollout(few)
        await world.create(OVERRIDE_POLICIES, override)
        await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS})
        await world.settle()
        shares = metered.begin(world)
        for image, share, outcome in (("nginx:bad", 0.03, "RolledBack"), ("nginx:1.29", 0.01, "Complete")):
            shares["bad"] = share
            changed = an_override("east", IMAGE, image)["spec"]["overrideRules"]
            await world.merge(OVERRIDE_POLICIES, "special", {"spec": {"overrideRules": changed}})
            await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS - 2, image: 2})
            await world.until_equal(lambda: overridden(world), outcome)
        assert await images(world) == {"nginx:1.29": OBJECTS}
        assert {query.count("web-") for query in metered.queries} == {2, OBJECTS - 2}


class Metered:
    """A source of metrics: the objects of a wave, asked for together, have another share of bad requests."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.shares = {"bad": 0.01}
        self.few: CountedRequests | None = None
        self.others: CountedRequests | None = None

    def begin(self, world: World) -> dict[str, float]:
        """Start with ten measured minutes; return the share of the first wave, which a test changes."""
        self.few = CountedRequests(world.clock, {"east": lambda: self.shares["bad"]})
        self.others = CountedRequests(world.clock, {"east": lambda: 0.01})
        self.shares["bad"] = 0.01
        for ago_s in range(600, 0, -10):
            self.few.advance(ago_s)
            self.others.advance(ago_s)
        return self.shares

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        raise AssertionError((connection, headers, timeout_s))

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        assert self.few is not None
        assert self.others is not None
        query = parse_qs(body.decode())["query"][0]
        self.queries.append(query)
        source = self.few if query.count("web-") == 2 else self.others
        source.advance()
        return await source.post(connection, body, headers, timeout_s=timeout_s)
