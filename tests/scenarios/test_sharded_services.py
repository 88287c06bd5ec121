"""The Redis Cluster of document 002 in a member with three zones: the deadlock is found and avoided, and shards stay in
different zones while a node and a zone fail and return.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sized
from itertools import product
from typing import Any

import pytest
import yaml
from tests.support.generated import nightly_unless
from tests.support.invariants import changes_of_a_restart
from tests.support.vectors import ROOT
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES, TOPOLOGY_SPREAD_PLANS
from federation.apimachinery import conditions
from federation.apimachinery.resources import NODES, PODS, STATEFUL_SETS, Object
from federation.client.client import PatchType
from federation.features.topologyspreadplan.names import (
    CONSTRAINTS_APPLIED,
    EVENT_SPREAD_VIOLATION,
    EVENT_SPREAD_VIOLATION_CLEARED,
    PLANNED,
    REASON_APPLY_REFUSED,
    REASON_PLANNED,
    REASON_REFUSED,
    TOPOLOGY_FIELD_MANAGER,
)

FOLDER = ROOT / "examples" / "seeds" / "002"
NAME = "rediscluster-3az-6379"
ZONES = ("zoneA", "zoneB", "zoneC")
LABEL = "failure-domain.beta.kubernetes.io/zone"
READY = [{"type": "Ready", "status": "True"}]


def manifests(file: str, **spec: Any) -> list[Object]:
    found = list(yaml.safe_load_all((FOLDER / file).read_text()))
    for manifest in found:
        manifest["metadata"]["namespace"] = "default"
        manifest["spec"] |= spec
    return found


def a_node(name: str, zone: str) -> Object:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: zone, "kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": READY},
    }


async def add_nodes(member: Member, zones: Mapping[str, int]) -> None:
    for zone, count in zones.items():
        for number in range(count):
            await member.admin.create(NODES, a_node(f"{zone.lower()}-{number}", zone))


async def taint(member: Member, *nodes: str, lost: bool) -> None:
    """Take nodes out of service, which deletes their StatefulSet pods, or put them back."""
    taints = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}] if lost else []
    for node in nodes:
        await member.merge(NODES, node, {"spec": {"taints": taints}}, namespace="")


async def pods(member: Member) -> dict[str, str]:
    """Return the node of each pod of the service, "" while it is pending."""
    found = (await member.admin.list(PODS, "default")).items
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in found
        if not pod["metadata"].get("deletionTimestamp") and pod["metadata"]["name"].startswith("rediscluster")
    }


def by_zone(placed: Mapping[str, str]) -> dict[str, int]:
    return dict(Counter(f"zone{node[4].upper()}" for node in placed.values() if node))


def assert_apart(placed: Mapping[str, str]) -> None:
    zones = [(pod.rpartition("-")[0], node[:5]) for pod, node in placed.items() if node]
    assert len(zones) == len(set(zones)), f"two pods of a shard are in one zone: {placed}"


async def plan_status(world: World) -> Object:
    return (await world.user.get(TOPOLOGY_SPREAD_PLANS, NAME, "default")).get("status") or {}


async def until_rules(world: World, *rules: str) -> list[Object]:
    """Wait until the violations are exactly of these rules, and return them."""

    async def look() -> set[str]:
        return {violation["rule"] for violation in (await plan_status(world)).get("violations") or ()}

    await world.until_equal(look, set(rules))
    return list((await plan_status(world))["violations"])


async def until_placed(world: World, count: int) -> dict[str, str]:
    member = world.members["east"]

    async def look() -> int:
        return len([node for node in (await pods(member)).values() if node])

    await world.until_equal(look, count)
    await world.settle()
    placed = await pods(member)
    assert_apart(placed)
    return placed


async def create(world: World, *, nodes: int = 2, **spec: Any) -> None:
    await add_nodes(world.members["east"], dict.fromkeys(ZONES, nodes))
    for policy in manifests("policy.yaml"):
        await world.create(PROPAGATION_POLICIES, policy)
    for plan in manifests("plan.yaml", **spec):
        await world.create(TOPOLOGY_SPREAD_PLANS, plan)


async def planned(world: World) -> str:
    held = conditions.find((await plan_status(world)).get("conditions"), PLANNED) or {}
    return str(held.get("reason", ""))


async def test_the_deadlock_of_document_002_is_found_and_avoided_before_any_pod_runs() -> None:
    async with a_world(members=("east",)) as world:
        await create(world)
        await world.until_equal(lambda: planned(world), REASON_PLANNED)
        status = await plan_status(world)
        assert status["limits"] == {"node": 1, "zone": 2}
        assert status["verdict"]["avoidance"] == "Pinned"
        for shard in manifests("shards.yaml"):
            await world.create(STATEFUL_SETS, shard)
        placed = await until_placed(world, 6)
        assert by_zone(placed) == dict.fromkeys(ZONES, 2)
        assert max(Counter(placed.values()).values()) == 1
        await until_rules(world)
        constraints = (await plan_status(world))["constraints"]
        assert [len(each["zones"]) for each in constraints] == [2, 2, 2]
        shard = await world.user.get(STATEFUL_SETS, f"{NAME}-2", "default")
        owners = {entry["manager"] for entry in shard["metadata"]["managedFields"]}
        assert TOPOLOGY_FIELD_MANAGER in owners
        assert await changes_of_a_restart(world) == []


async def test_shards_stay_apart_while_a_node_and_a_zone_fail_and_return() -> None:
    async with a_world(members=("east",)) as world:
        member = world.members["east"]
        await create(world)
        for shard in manifests("shards.yaml"):
            await world.create(STATEFUL_SETS, shard)
        before = await until_placed(world, 6)
        await until_rules(world)

        await taint(member, "zonea-0", lost=True)
        await until_placed(world, 5)  # maxSkew 1 over nodes leaves no other node
        violations = await until_rules(world, "V7")
        assert all(violation["severity"] == "critical" for violation in violations)
        await taint(member, "zonea-0", lost=False)
        assert by_zone(await until_placed(world, 6)) == by_zone(before)
        await until_rules(world)

        await taint(member, "zoneb-0", "zoneb-1", lost=True)
        assert by_zone(await until_placed(world, 4)) == {"zoneA": 2, "zoneC": 2}
        await until_rules(world, "V5", "V7")
        await world.restart()
        await taint(member, "zoneb-0", "zoneb-1", lost=False)
        assert by_zone(await until_placed(world, 6)) == by_zone(before)
        await until_rules(world)

        events = [message for reason, message in await world.events() if reason == EVENT_SPREAD_VIOLATION]
        cleared = [m for reason, m in await world.events() if reason == EVENT_SPREAD_VIOLATION_CLEARED]
        assert len([message for message in events if message.startswith("V5")]) == 1
        assert len([message for message in cleared if message.startswith("V5")]) == 1


async def test_new_shards_get_new_constraints_and_running_pods_stay() -> None:
    async with a_world(members=("east",)) as world:
        await create(world, shards=None)
        shards = manifests("shards.yaml")
        for shard in shards:
            await world.create(STATEFUL_SETS, shard)
        before = await until_placed(world, 6)
        for number in (3, 4):
            text = yaml.safe_dump(shards[0]).replace(f"{NAME}-0", f"{NAME}-{number}")
            await world.create(STATEFUL_SETS, yaml.safe_load(text))
        placed = await until_placed(world, 10)
        assert before.items() <= placed.items()
        status = await plan_status(world)
        assert status["limits"] == {"node": 3, "zone": 4}
        assert {(each["nodeMaxSkew"], each["zoneMaxSkew"]) for each in status["constraints"]} == {(3, 4)}
        violations = await until_rules(world, "V10")
        assert {violation["domain"] for violation in violations} == {f"{NAME}-{number}" for number in range(3)}


@pytest.mark.parametrize("mode", ["Relaxed", "Strict"])
async def test_modes_raise_max_skew_or_refuse_too_few_nodes(mode: str) -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await create(world, nodes=2 if mode == "Relaxed" else 1, mode=mode)
        for shard in manifests("shards.yaml"):
            await world.create(STATEFUL_SETS, shard)
        wanted = REASON_PLANNED if mode == "Relaxed" else REASON_REFUSED
        await world.until_equal(lambda: planned(world), wanted)
        await world.settle()
        spec = (await world.user.get(STATEFUL_SETS, f"{NAME}-0", "default"))["spec"]["template"]["spec"]
        status = await plan_status(world)
        if mode == "Relaxed":
            assert status["verdict"]["avoidance"] == "Relaxed"
            hard = [each for each in spec["topologySpreadConstraints"] if each["whenUnsatisfiable"] == "DoNotSchedule"]
            assert [each["maxSkew"] for each in hard] == [2, 2]
        else:
            assert "need 6 nodes; there are 3" in status["verdict"]["message"]
            assert "topologySpreadConstraints" not in spec


async def test_constraints_of_a_user_are_not_overwritten() -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await create(world)
        own = manifests("shards.yaml")[0]
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        own["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
        await world.user.patch(
            STATEFUL_SETS,
            own["metadata"]["name"],
            own,
            patch_type=PatchType.APPLY,
            namespace="default",
            field_manager="user",
        )

        async def look() -> str:
            held = conditions.find((await plan_status(world)).get("conditions"), CONSTRAINTS_APPLIED) or {}
            return str(held.get("reason", ""))

        await world.until_equal(look, REASON_APPLY_REFUSED)
        kept = await world.user.get(STATEFUL_SETS, own["metadata"]["name"], "default")
        assert kept["spec"]["template"]["spec"]["affinity"] == {"nodeAffinity": required}


async def test_shards_are_assigned_to_clusters_with_one_zone_each() -> None:
    """Constraints cannot span clusters, so each StatefulSet is placed in the clusters of its assigned zones."""
    clusters = {"east": "zoneA", "north": "zoneB", "west": "zoneC"}
    async with a_world(members=tuple(clusters)) as world:
        for cluster, zone in clusters.items():
            await add_nodes(world.members[cluster], {zone: 2})
        for policy in manifests("policy.yaml", schedulingMode="Divide", maxClusters=None):
            await world.create(PROPAGATION_POLICIES, policy)
        for plan in manifests("plan.yaml"):
            await world.create(TOPOLOGY_SPREAD_PLANS, plan)
        await world.until_equal(lambda: planned(world), REASON_PLANNED)
        for shard in manifests("shards.yaml"):
            await world.create(STATEFUL_SETS, shard)

        async def look() -> dict[str, int]:
            found = {name: await pods(member) for name, member in world.members.items()}
            return {name: len([node for node in placed.values() if node]) for name, placed in found.items()}

        await world.until_equal(look, dict.fromkeys(clusters, 2))
        await world.settle()
        shares = (await plan_status(world))["clusters"]
        assert [(each["cluster"], each["pods"]) for each in shares] == [(name, 2) for name in clusters]
        for each in shares:
            found = Counter(pod.rpartition("-")[0] for pod in await pods(world.members[each["cluster"]]))
            assert found == each["replicas"]
        await until_rules(world)

        before = await placed_in(world)
        north = world.members["north"]
        await taint(north, "zoneb-0", lost=True)
        await until_rules(world, "V7")
        await taint(north, "zoneb-0", lost=False)
        await until_rules(world)
        await taint(north, "zoneb-0", "zoneb-1", lost=True)
        await until_rules(world, "V5", "V7")
        await world.restart()
        await taint(north, "zoneb-0", "zoneb-1", lost=False)
        await until_rules(world)
        assert zones_of(await placed_in(world)) == zones_of(before)

        # The pods of a cluster that does not answer may still run: nothing moves.
        running = await placed_in(world)
        north.line.mode = "down"
        await world.until_ready("north", status="Unknown")
        await world.pass_time(60)
        north.line.mend()
        await world.until_ready("north")
        await until_rules(world)
        assert await placed_in(world) == running


async def placed_in(world: World) -> dict[str, str]:
    """Return the node of each scheduled pod of the service, in all members."""
    found = [await pods(member) for member in world.members.values()]
    return {pod: node for each in found for pod, node in each.items() if node}


def zones_of(placed: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return shard and zone of each pod."""
    return {(pod.rpartition("-")[0], node[:5]) for pod, node in placed.items()}


async def test_placements_of_a_user_are_kept_and_reported_if_they_contradict_the_plan() -> None:
    async with a_world(members=("east", "north"), has_workloads=False) as world:
        for cluster, zone in (("east", "zoneA"), ("north", "zoneB")):
            await add_nodes(world.members[cluster], {zone: 3})
        for plan in manifests("plan.yaml", zones=[{"name": "zoneA"}, {"name": "zoneB"}]):
            await world.create(TOPOLOGY_SPREAD_PLANS, plan)
        await world.until_equal(lambda: planned(world), REASON_PLANNED)
        first, second, third = manifests("shards.yaml")
        kept = json.dumps([{"cluster": "east"}])
        weighted = json.dumps([{"cluster": name, "preferences": {"weight": 1}} for name in ("east", "north")])
        first["metadata"]["annotations"] = {names.PLACEMENTS: kept}
        second["metadata"]["annotations"] = {names.PLACEMENTS: weighted}
        for shard in (first, second, third):
            await world.create(STATEFUL_SETS, shard)

        async def contradicted() -> list[str]:
            violations = (await plan_status(world)).get("violations") or ()
            return [each["domain"] for each in violations if "must name east, north" in each["message"]]

        await world.until_equal(contradicted, [f"{NAME}-0"])
        found = [await world.user.get(STATEFUL_SETS, f"{NAME}-{number}", "default") for number in range(3)]
        for shard in found:
            assert "topologySpreadConstraints" in shard["spec"]["template"]["spec"]
        assert [shard["metadata"]["annotations"][names.PLACEMENTS] for shard in found[:2]] == [kept, weighted]
        assert [entry["cluster"] for entry in json.loads(found[2]["metadata"]["annotations"][names.PLACEMENTS])] == [
            "east",
            "north",
        ]


@pytest.mark.parametrize(
    ("count", "path"),
    nightly_unless([(2, (3, 5)), (3, (6, 10, 5))], product((2, 3), ((3, 5), (6, 10, 5)))),
    ids=lambda value: f"{value} zones" if isinstance(value, int) else " to ".join(map(str, value)),
)
async def test_the_validated_operations_complete_across_clusters(count: int, path: tuple[int, ...]) -> None:
    """Document 002, with a cluster for each zone: create, scale out and in, delete pods, change their resources."""
    clusters = dict(zip(("east", "north", "west"), ZONES[:count], strict=False))
    async with a_world(members=tuple(clusters)) as world:
        for cluster, zone in clusters.items():
            await add_nodes(world.members[cluster], {zone: 6 // count})
        for policy in manifests("policy.yaml"):
            await world.create(PROPAGATION_POLICIES, policy)
        for plan in manifests("plan.yaml", shards=path[0], zones=[{"name": zone} for zone in clusters.values()]):
            await world.create(TOPOLOGY_SPREAD_PLANS, plan)
        template = yaml.safe_dump(manifests("shards.yaml")[0])
        present = 0
        for shards in path:
            await world.merge(TOPOLOGY_SPREAD_PLANS, NAME, {"spec": {"shards": shards}})
            await world.until(lambda shards=shards: _is_planned(world, shards))
            for number in range(present, shards):
                shard = yaml.safe_load(template.replace(f"{NAME}-0", f"{NAME}-{number}"))
                shard["spec"]["updateStrategy"] = {"type": "OnDelete"}
                await world.create(STATEFUL_SETS, shard)
            for number in range(shards, present):
                await world.user.delete(STATEFUL_SETS, f"{NAME}-{number}", "default", propagation_policy="Background")
            present = shards
            placed = await until_complete(world, shards)
            limits = (await plan_status(world))["limits"]
            if shards == max(path):
                by_zone = Counter(node[:5] for node in placed.values())
                assert max(Counter(placed.values()).values()) <= limits["node"]
                assert max(by_zone.values()) - min(by_zone.values()) <= 1
                assert count == 2 or max(by_zone.values()) <= limits["zone"]

        for cluster, member in world.members.items():
            name = next(iter(await pods(member)))
            await member.admin.delete(PODS, name, "default")
            assert zones_of(await until_complete(world, present)) == zones_of(placed), cluster
        requests = {"resources": {"requests": {"cpu": "20m"}}}
        spec = yaml.safe_load(template)["spec"]["template"]["spec"]
        changed = [{**container, **requests} for container in spec["containers"]]
        for number in range(present):
            change = {
                "spec": {"template": {"spec": {"containers": changed}}, "updateStrategy": {"type": "RollingUpdate"}}
            }
            await world.merge(STATEFUL_SETS, f"{NAME}-{number}", change)

        async def upgraded() -> int:
            found = [
                each for member in world.members.values() for each in (await member.admin.list(PODS, "default")).items
            ]
            return sum(
                pod["spec"]["containers"][0].get("resources") == requests["resources"]
                and bool(pod["spec"].get("nodeName"))
                for pod in found
            )

        await world.until_equal(upgraded, 2 * present)
        assert zones_of(await until_complete(world, present)) == zones_of(placed)


async def until_complete(world: World, shards: int) -> dict[str, str]:
    """Wait until each shard has two pods in different zones, and nothing else runs; return the nodes."""

    async def look() -> tuple[int, int]:
        placed = await placed_in(world)
        return len(placed), len(zones_of(placed))

    await world.until_equal(look, (2 * shards, 2 * shards))
    await world.settle()
    assert await look() == (2 * shards, 2 * shards)
    return await placed_in(world)


async def _is_planned(world: World, shards: int) -> bool:
    status = await plan_status(world)
    return bool(status.get("shards") == shards and await planned(world) == REASON_PLANNED)


async def test_new_shards_change_the_constraints_in_every_cluster() -> None:
    """The zones are racks with one cluster each, and the service grows from three shards to five."""
    clusters = {"east": "rack-0", "north": "rack-1", "west": "rack-2"}
    async with a_world(members=tuple(clusters)) as world:
        for cluster, rack in clusters.items():
            for number in range(2):
                node = a_node(f"{rack}-{number}", "zoneA")
                node["metadata"]["labels"]["example.com/rack"] = rack
                await world.members[cluster].admin.create(NODES, node)
        for policy in manifests("policy.yaml", schedulingMode="Divide", maxClusters=None):
            await world.create(PROPAGATION_POLICIES, policy)
        racks = [{"name": rack} for rack in clusters.values()]
        for plan in manifests("plan.yaml", zoneKey="example.com/rack", zones=racks):
            await world.create(TOPOLOGY_SPREAD_PLANS, plan)
        shards = manifests("shards.yaml")
        for number in (3, 4):
            text = yaml.safe_dump(shards[0]).replace(f"{NAME}-0", f"{NAME}-{number}")
            shards.append(yaml.safe_load(text))

        async def assigned() -> list[list[str]]:
            return [each["zones"] for each in (await plan_status(world)).get("constraints") or ()]

        async def placed() -> dict[str, str]:
            found = [await pods(member) for member in world.members.values()]
            return {pod: node for each in found for pod, node in each.items() if node}

        async def grow(start: int, count: int) -> dict[str, str]:
            await world.until(lambda: _has_length(assigned, count))
            for shard in shards[start:count]:
                await world.create(STATEFUL_SETS, shard)
            await world.until(lambda: _has_length(placed, 2 * count))
            await world.settle()
            return await placed()

        before = await grow(0, 3)
        assert (await plan_status(world))["limits"] == {"node": 1, "zone": 2}
        await world.merge(TOPOLOGY_SPREAD_PLANS, NAME, {"spec": {"shards": 5}})
        after = await grow(3, 5)
        assert before.items() <= after.items()
        assert (await plan_status(world))["limits"] == {"node": 3, "zone": 4}
        racks_of = {(pod.rpartition("-")[0], node.rpartition("-")[0]) for pod, node in after.items()}
        assert len(racks_of) == 10, "two pods of a shard are in one rack"
        assert max(Counter(rack for _, rack in racks_of).values()) <= 4
        assert max(Counter(after.values()).values()) <= 3
        for member in world.members.values():
            for each in (await member.admin.list(STATEFUL_SETS, "default")).items:
                constraints = each["spec"]["template"]["spec"]["topologySpreadConstraints"]
                hard = [one["maxSkew"] for one in constraints if one["whenUnsatisfiable"] == "DoNotSchedule"]
                soft = [one["maxSkew"] for one in constraints if one["whenUnsatisfiable"] == "ScheduleAnyway"]
                assert (hard, soft) == ([3, 4], [1, 1])


async def _has_length(look: Callable[[], Awaitable[Sized]], length: int) -> bool:
    return len(await look()) == length


async def test_explicit_limits_and_a_custom_domain_are_used() -> None:
    """Another service than Redis, with replicas in different racks, which are a label of the nodes."""
    async with a_world(members=("east",)) as world:
        member, rack = world.members["east"], "example.com/rack"
        for number in range(4):
            node = a_node(f"racked-{number}", "zoneA")
            node["metadata"]["labels"][rack] = f"rack-{number % 2}"
            await member.admin.create(NODES, node)
        for policy in manifests("policy.yaml"):
            await world.create(PROPAGATION_POLICIES, policy)
        racks = [{"name": "rack-0"}, {"name": "rack-1"}]
        own = {"zoneKey": rack, "zones": racks, "maxPodsPerNode": 2, "maxPodsPerZone": 3}
        for plan in manifests("plan.yaml", **own):
            await world.create(TOPOLOGY_SPREAD_PLANS, plan)
        await world.until_equal(lambda: planned(world), REASON_PLANNED)
        assert (await plan_status(world))["limits"] == {"node": 2, "zone": 3}
        for shard in manifests("shards.yaml"):
            await world.create(STATEFUL_SETS, shard)

        async def look() -> int:
            return len([node for node in (await pods(member)).values() if node])

        await world.until_equal(look, 6)
        await world.settle()
        placed = await pods(member)
        used = {(pod.rpartition("-")[0], f"rack-{int(node[-1]) % 2}") for pod, node in placed.items()}
        assert len(used) == 6, placed
        assert max(Counter(placed.values()).values()) <= 2
        await until_rules(world)
        found = await world.user.get(STATEFUL_SETS, f"{NAME}-0", "default")
        spec = found["spec"]["template"]["spec"]
        hard = [each for each in spec["topologySpreadConstraints"] if each["whenUnsatisfiable"] == "DoNotSchedule"]
        assert [(each["topologyKey"], each["maxSkew"]) for each in hard] == [("kubernetes.io/hostname", 2), (rack, 3)]
