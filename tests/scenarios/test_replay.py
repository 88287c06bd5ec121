"""What was decided is decided again from the records, bit for bit; and a change of the world comes out as it would have.

Every other scenario also ends with a replay of its decisions (`tests/support/world.py`).
"""

from datetime import timedelta

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.replays import elsewhere, replay
from tests.support.world import a_world_without_pods

from federation.api import names
from federation.api.resources import PROJECTS, PROPAGATION_POLICIES, SCHEDULING_PROFILES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS
from federation.cli.replay.worldoutput import print_comparison
from federation.features.catalogue import decision_chain
from federation.plans.replays import to_json
from federation.scheduling.replay.otherworld import Changes, to_changed_object


async def test_every_decision_of_a_scenario_is_repeated() -> None:
    async with a_world_without_pods(members=("east", "north", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        for name in ("blog", "web"):
            await world.create(DEPLOYMENTS, a_deployment(name, replicas=8))
            await world.until_replicas(name, {"east": 4, "north": 2, "west": 2})
        await world.scale("web", 4)
        await world.until_replicas("web", {"east": 2, "north": 1, "west": 1})
        policy = a_policy({"east": 1, "west": 1})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.until_replicas("web", {"east": 2, "west": 2})
        verdict = await replay(world.journal)
        assert (verdict.equal, verdict.different) == (verdict.decisions, [])
        assert verdict.by_outcome["Scheduled"] >= 5


async def test_a_bad_policy_is_named_with_its_time_and_objects(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy would have allowed 10 replicas per cluster. Of 150 replicas at noon it would have placed 30."""
    async with a_world_without_pods(members=("east", "north", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        for name in ("blog", "web"):
            await world.create(DEPLOYMENTS, a_deployment(name, replicas=9))
            await world.until_replicas(name, {"east": 3, "north": 3, "west": 3})
        await world.pass_time(60)
        scaled_at = world.clock.now()
        await world.scale("web", 150)
        await world.until_replicas("web", {"east": 50, "north": 50, "west": 50})
        bad = a_policy({"east": 1, "north": 1, "west": 1})
        for place in bad["spec"]["placement"]:
            place["preferences"]["maxReplicas"] = 10
        key, obj = to_changed_object(
            {**bad, "apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "PropagationPolicy"}, decision_chain()
        )
        comparison = await elsewhere(world.journal, Changes({key: obj}))
        found = to_json(comparison)
        worst = found["worst"]
        assert (worst["recorded"], worst["other"]) == (0, 120)
        assert worst["objects"] == [{"namespace": "default", "kind": "Deployment", "name": "web", "missing": 120}]
        assert to_rfc3339(scaled_at) <= worst["since"] <= worst["at"] <= to_rfc3339(scaled_at + timedelta(minutes=1))
        assert found["total"]["other"]["missingReplicaMinutes"] > 0
        assert found["total"]["recorded"]["missingReplicaMinutes"] == 0
        print_comparison(comparison, "table", 0.5)
        printed = " ".join(capsys.readouterr().out.split())
        assert f"120 replicas without a cluster at {worst['at']}, recorded 0" in printed
        assert "Deployment web in default 120" in printed


async def test_a_world_without_a_cluster_and_with_another_one_moves_its_replicas() -> None:
    async with a_world_without_pods(members=("east", "north", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_replicas("web", {"east": 3, "north": 3, "west": 3})
        changes = Changes(without_clusters=frozenset({"west"}), like={"north-like-1": "north"})
        comparison = await elsewhere(world.journal, changes)
        (different,) = comparison.different
        assert different.other_after == {"east": 3, "north": 3, "north-like-1": 3}


async def test_another_price_list_and_profile_and_the_sums_of_teams() -> None:
    """Emissions by the labels of clusters, cost by a list, a profile that prefers the cheaper cluster, and a Project."""
    labels = {name: {f"{names.CARBON_PREFIX}cpu": grams} for name, grams in (("east", "400"), ("west", "100"))}
    async with a_world_without_pods(members=("east", "west"), labels=labels) as world:
        project = {"spec": {"namespaces": ["default"], "clusters": {"names": ["east", "west"]}}}
        head = {"apiVersion": PROJECTS.api_version, "kind": PROJECTS.kind, "metadata": {"name": "shop"}}
        await world.create(PROJECTS, head | project)
        profile = {"spec": {"plugins": {"score": {"enabled": [{"name": "ClusterCost"}]}}}}
        head = {"apiVersion": SCHEDULING_PROFILES.api_version, "kind": "SchedulingProfile"}
        await world.create(SCHEDULING_PROFILES, {**head, "metadata": {"name": "cheap"}, **profile})
        await world.create(PROPAGATION_POLICIES, a_policy({}, schedulingMode="Duplicate", maxClusters=1))
        web = a_deployment("web", replicas=4)
        web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        await world.create(DEPLOYMENTS, web)
        await world.settle()
        (cluster,) = await world.replicas("web")
        other = "west" if cluster == "east" else "east"
        rates = {cluster: {"price": {"cpu": 3}}, other: {"price": {"cpu": 1}}}
        same = to_json(await elsewhere(world.journal, Changes(rates=rates)))["total"]
        hours = same["other"]["cpuHours"]
        assert hours > 0
        assert (same["recorded"]["cost"], same["other"]["cost"]) == (0, pytest.approx(3 * hours, rel=1e-3))
        found = to_json(await elsewhere(world.journal, Changes(rates=rates, profile="cheap")))
        assert [each["other"]["placements"] for each in found["different"]] == [{other: None}]
        total = found["total"]
        assert total["other"]["cost"] == pytest.approx(hours, rel=1e-3)
        grams = {name: int(labels[name][f"{names.CARBON_PREFIX}cpu"]) for name in labels}
        for side, name in (("recorded", cluster), ("other", other)):
            assert total[side]["emissionsKg"] == pytest.approx(hours * grams[name] / 1000, rel=1e-3)
        (team,) = found["byTeam"]
        assert (team["project"], team["other"]["cost"]) == ("shop", total["other"]["cost"])
