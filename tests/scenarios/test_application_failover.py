"""An unhealthy workload leaves its cluster, at most once for each cluster and template, and tells the next copy its state."""

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.applicationfailover.names import (
    EVENT_MOVES,
    EVENT_NO_STATE,
    REASON_BAD_TEMPLATE,
    REASON_HEALTHY,
    REASON_LIMIT,
    REASON_NOT_KNOWN,
    REASON_UNHEALTHY,
    REASON_UNHEALTHY_EVERYWHERE,
)
from federation.planning.failover.application import handed_states, record_of
from federation.planning.federatedobject.placements import effective_placement
from federation.simulator.controllers.names import SIMULATOR_READY

TOLERATION_S = 30
MANY = ("east", "middle", "north", "south", "west")
BAD = {SIMULATOR_READY: "false"}
_NOTES = "/spec/template/metadata/annotations"


def an_app(name: str = "web", replicas: int = 2, **notes: str) -> Object:
    """Return a Deployment whose update may take all pods at once, so that a bad revision has no good pods beside it."""
    app = a_deployment(name, replicas)
    app["spec"]["strategy"] = {"type": "Recreate"}
    app["spec"]["template"]["metadata"]["annotations"] = notes
    return app


def moving(*clusters: str, copies: bool = True, **application: Any) -> Object:
    """Return a policy whose objects leave clusters; copies are in one cluster at a time."""
    rules = {"tolerationSeconds": TOLERATION_S, **application}
    more: dict[str, Any] = {"failover": {"application": rules}}
    if copies:
        more |= {"schedulingMode": "Duplicate", "maxClusters": 1}
    return a_policy(dict.fromkeys(clusters, 1), **more)


async def placed(world: World, name: str = "web") -> set[str]:
    return set(effective_placement(await world.federated(name)))


async def until_gone_from(world: World, cluster: str) -> None:
    async def look() -> bool:
        return await world.members[cluster].find(DEPLOYMENTS, "web") is None

    await world.until(look, f"no copy in {cluster}")


async def spoil(world: World, *clusters: str) -> None:
    """Let the pods of all Deployments in these clusters never become ready."""
    override = an_override(clusters[0], _NOTES, BAD)
    override["spec"]["overrideRules"][0]["targetClusters"]["clusters"] = list(clusters)
    await world.create(OVERRIDE_POLICIES, override)
    await world.merge(DEPLOYMENTS, "web", {"metadata": {"labels": {names.OVERRIDE_POLICY_LABEL: "special"}}})


async def heal(world: World) -> None:
    """Let the pods become ready again."""
    await world.merge(OVERRIDE_POLICIES, "special", {"spec": {"overrideRules": []}})


@contextlib.asynccontextmanager
async def a_healthy_app(policy: Object, replicas: int = 2) -> AsyncIterator[tuple[World, str]]:
    """Run a world with one copy of a workload that has been healthy for a while; yield its cluster too."""
    async with a_world(toleration_s=5) as world:
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, an_app(replicas=replicas))
        await world.until_available("web", replicas)
        await world.pass_time(TOLERATION_S + 2)
        assert (await world.condition("web", names.APPLICATION_HEALTHY))["reason"] == REASON_HEALTHY
        yield world, min(await placed(world))


async def test_it_leaves_the_cluster_where_it_is_unhealthy_and_never_returns() -> None:
    async with a_healthy_app(moving("east", "north", "west")) as (world, home):
        await spoil(world, home)
        await world.pass_time(TOLERATION_S - 10)
        assert await placed(world) == {home}, "it is tolerated for a while"
        await world.until_available("web", 2)
        [elsewhere] = await placed(world)
        assert elsewhere != home
        assert any(reason == EVENT_MOVES and home in text for reason, text in await world.events())
        await until_gone_from(world, home)
        condition = await world.condition("web", names.APPLICATION_HEALTHY)
        assert condition["reason"] == REASON_HEALTHY
        assert condition["message"] == f"it left {home}, where it was unhealthy"
        await heal(world)
        await world.restart()
        await world.pass_time(600)
        assert await placed(world) == {elsewhere}, "nothing moves it back"


async def test_once_its_policy_has_no_rules_the_health_of_a_workload_is_not_known() -> None:
    async with a_healthy_app(moving("east", "north", "west")) as (world, _):
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"failover": None}})

        async def reason() -> str:
            return str((await world.condition("web", names.APPLICATION_HEALTHY))["reason"])

        await world.until_equal(reason, REASON_NOT_KNOWN)


async def test_the_old_copy_stays_until_the_new_one_is_healthy() -> None:
    async with a_healthy_app(moving("east", "north", "west")) as (world, home):
        await spoil(world, "east", "north", "west")  # it is not healthy elsewhere either
        await world.until_equal(lambda: moves(world), {home})
        await world.pass_time(20)
        assert home in await world.replicas("web")
        await heal(world)
        await world.until_available("web", 2)
        await until_gone_from(world, home)


async def test_a_new_copy_is_not_late_because_no_process_looked_at_it() -> None:
    async with a_healthy_app(moving("east", "north", "west", maxMoves=1)) as (world, home):
        await spoil(world, "east", "north", "west")
        await world.until_equal(lambda: moves(world), {home})
        await world.pass_time(20)
        await world.stop()
        await world.clock.advance(3600)
        await world.restart()
        await world.pass_time(200)
        assert home in await world.replicas("web"), "half of the grace time is left"
        await world.pass_time(200)
        await until_gone_from(world, home)
        await heal(world)
        await world.until_available("web", 2)


async def moves(world: World) -> set[str]:
    """Return the clusters that the workload has left."""
    federated = await world.federated("web")
    return set(record_of(federated).evicted) - set(effective_placement(federated))


async def test_a_copy_that_must_not_run_twice_is_gone_before_the_next_one_is_created() -> None:
    async with a_healthy_app(moving("east", "north", "west", purgeMode="Directly")) as (world, home):
        await spoil(world, home)
        seen: list[set[str]] = []
        while not seen or seen[-1] in ({home}, set()):
            await world.pass_time(0.5)
            seen.append({name for name, member in world.members.items() if await member.find(DEPLOYMENTS, "web")})
            assert len(seen[-1]) <= 1
            assert len(seen) < 400
        await world.until_available("web", 2)


async def test_a_copy_is_kept_until_a_user_gives_it_up() -> None:
    async with a_healthy_app(moving("east", "north", "west", purgeMode="Never")) as (world, home):
        await spoil(world, home)
        await world.until_available("web", 2)
        await world.restart()
        await world.pass_time(900)
        assert home in await world.replicas("web")
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.PURGE: home}}})
        await until_gone_from(world, home)


async def test_a_divided_workload_leaves_the_cluster_and_keeps_what_is_available() -> None:
    async with a_healthy_app(moving("east", "north", "west", copies=False), replicas=6) as (world, _):
        await spoil(world, "east")
        await world.until_equal(lambda: moves(world), {"east"})
        await world.until_available("web", 6)
        assert sum((await world.replicas("web")).values()) == 6
        await world.pass_time(300)
        assert await world.replicas("web") == {"north": 3, "west": 3}


async def test_a_template_that_was_never_healthy_stays() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, moving("east", "north", "west"))
        await world.create(DEPLOYMENTS, an_app(**BAD))
        await world.pass_time(20 * TOLERATION_S)
        assert not await moves(world)
        condition = await world.condition("web", names.APPLICATION_HEALTHY)
        assert condition["reason"] == REASON_BAD_TEMPLATE
        assert "no copy of its template has been healthy since it was written" in condition["message"]


async def test_a_template_does_not_tour_the_fleet_and_a_new_one_starts_again() -> None:
    async with a_healthy_app(moving("east", "north", "west", maxMoves=1)) as (world, home):
        await spoil(world, "east", "north", "west")
        await world.until_equal(lambda: moves(world), {home})
        await world.restart()
        await world.pass_time(4000)
        assert await moves(world) == {home}
        condition = await world.condition("web", names.APPLICATION_HEALTHY)
        assert condition["reason"] == REASON_LIMIT
        new = {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}}
        await world.merge(DEPLOYMENTS, "web", new)
        await world.pass_time(10)
        assert record_of(await world.federated("web")).evicted == {}


async def test_what_is_bad_in_all_of_its_clusters_stays() -> None:
    async with a_healthy_app(moving("east", "north", copies=False), replicas=4) as (world, _):
        await spoil(world, "east", "north")
        await world.pass_time(10 * TOLERATION_S)
        assert await placed(world) == {"east", "north"}
        condition = await world.condition("web", names.APPLICATION_HEALTHY)
        assert condition["reason"] == REASON_UNHEALTHY_EVERYWHERE


async def test_without_another_cluster_it_stays_and_recovers_where_it_is() -> None:
    async with a_healthy_app(moving("east")) as (world, _):
        await spoil(world, "east")
        await world.pass_time(5 * TOLERATION_S)
        assert await placed(world) == {"east"}
        assert (await world.condition("web", names.APPLICATION_HEALTHY))["reason"] == REASON_UNHEALTHY
        await heal(world)
        await world.until_available("web", 2)
        await world.pass_time(TOLERATION_S + 5)
        assert record_of(await world.federated("web")).evicted == {}


STATE = {
    "rules": [
        {"aliasLabelName": "example.com/replicas", "jsonPath": "{.replicas}"},
        {"annotation": "example.com/generation", "jsonPath": "{.observedGeneration}"},
        {"fieldPath": "spec.revisionHistoryLimit", "jsonPath": "{.updatedReplicas}"},
    ]
}


async def test_the_next_copy_gets_the_state_also_if_its_cluster_dies_meanwhile() -> None:
    async with a_healthy_app(moving("east", "north", "west", statePreservation=STATE)) as (world, home):
        others = sorted(set(world.members) - {home})
        await spoil(world, "east", "north", "west")
        await world.until_equal(lambda: moves(world), {home})
        [second] = await placed(world)
        copy = await copy_in(world, second)
        assert copy["metadata"]["labels"]["example.com/replicas"] == "2"
        assert copy["metadata"]["annotations"]["example.com/generation"]
        assert copy["spec"]["revisionHistoryLimit"] == 2
        await world.restart()
        await world.lose(second)
        [third] = set(others) - {second}
        await world.until_equal(lambda: placed(world), {third})
        assert (await copy_in(world, third))["metadata"]["labels"]["example.com/replicas"] == "2"
        await heal(world)
        await world.until_available("web", 2)
        await world.pass_time(TOLERATION_S + 5)
        federated = await world.federated("web")
        assert record_of(federated).state is None, "a copy was healthy with it"
        assert set(handed_states(federated)) == {third}, "to take it back would change what runs"
        await world.bring_back(second)


@pytest.mark.parametrize("where", ["failover", "application"])
async def test_a_lost_cluster_hands_over_what_its_copy_reported_last(where: str) -> None:
    state: dict[str, Any] = {"statePreservation": STATE}
    failover = state if where == "failover" else {"application": state}
    async with a_world(toleration_s=5, members=MANY) as world:
        one = {"schedulingMode": "Duplicate", "maxClusters": 1, "failover": failover}
        await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(MANY, 1), **one))
        await world.create(DEPLOYMENTS, an_app())
        await world.until_available("web", 2)
        [home] = await placed(world)
        await world.lose(home)
        await world.until_equal(lambda: gone(world, home), True)
        [second] = await placed(world)
        copy = await copy_in(world, second)
        assert copy["metadata"]["labels"]["example.com/replicas"] == "2"
        assert copy["spec"]["revisionHistoryLimit"] == 2
        await world.lose(second)  # the host moves what ran there, too
        await world.until_equal(lambda: gone(world, second), True)
        [third] = await placed(world)
        assert (await copy_in(world, third))["metadata"]["labels"]["example.com/replicas"] == "2"
        assert not [text for reason, text in await world.events() if reason == EVENT_NO_STATE]
        await world.bring_back(home, second)


async def test_the_state_of_a_lost_cluster_that_is_not_known_is_named() -> None:
    """After a restart the last report of a cluster that does not answer is in no cache."""
    async with a_world(toleration_s=60) as world:
        one = {"schedulingMode": "Duplicate", "maxClusters": 1, "failover": {"statePreservation": STATE}}
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, **one))
        await world.create(DEPLOYMENTS, an_app())
        await world.until_available("web", 2)
        [home] = await placed(world)
        await world.lose(home)
        await world.restart()
        await world.until_equal(lambda: gone(world, home), True)
        [text] = {text for reason, text in await world.events() if reason == EVENT_NO_STATE}
        assert text == f"what it reported in {home} is not known, and is not handed over"
        await world.bring_back(home)


async def gone(world: World, cluster: str) -> bool:
    found = await placed(world)
    return bool(found) and cluster not in found


async def copy_in(world: World, cluster: str) -> Object:
    found: list[Object] = []

    async def look() -> bool:
        copy = await world.members[cluster].find(DEPLOYMENTS, "web")
        found.extend([copy] if copy is not None else [])
        return copy is not None

    await world.until(look, f"the copy in {cluster}")
    return found[-1]


async def test_the_policy_of_the_reference_moves_a_workload_with_its_state() -> None:
    page = (ROOT / "docs" / "reference" / "failover.md").read_text(encoding="utf-8")
    [shop] = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "shop" in block)
    async with a_healthy_app(shop) as (world, _):
        await world.pass_time(shop["spec"]["failover"]["application"]["tolerationSeconds"])
        [home] = await placed(world)
        await spoil(world, home)
        await world.until_equal(lambda: moves(world), {home})
        [elsewhere] = await placed(world)
        assert (await copy_in(world, elsewhere))["metadata"]["labels"]["example.com/replicas"] == "2"
