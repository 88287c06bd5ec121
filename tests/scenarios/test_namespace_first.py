"""Objects that are created together with their namespace: they wait for it in each member, and no member refuses one."""

from collections import Counter

import pytest
from tests.support.manifests import a_policy
from tests.support.world import NAMES, World, a_world_without_pods

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Object

_COUNT = 30


async def _create(world: World, name: str, count: int) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}]
    policy = a_policy(dict.fromkeys(NAMES, 1), schedulingMode="Duplicate", resourceSelectors=kinds)
    policy["metadata"]["namespace"] = name
    await world.create(NAMESPACES, namespace)
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(count):
        await world.create(CONFIGMAPS, _settings(name, number))


def _settings(namespace: str, number: int) -> Object:
    metadata = {"name": f"cm-{number}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


async def _delivered(world: World, namespace: str) -> dict[str, int]:
    found = {}
    for name, member in world.members.items():
        listed = (await member.admin.list(CONFIGMAPS, namespace)).items
        found[name] = sum(obj["metadata"]["name"].startswith("cm-") for obj in listed)
    return found


@pytest.mark.parametrize("delay_s", [0.0, 1.0], ids=["at once", "slow members"])
async def test_no_member_refuses_objects_because_their_namespace_has_not_arrived(delay_s: float) -> None:
    async with a_world_without_pods() as world:
        await _create(world, "before", 1)  # from now on, caches of the members are complete
        await world.until_equal(lambda: _delivered(world, "before"), dict.fromkeys(NAMES, 1))
        await world.settle()
        for member in world.members.values():
            member.line.calls.clear()
            member.line.delays_s = {"patch": delay_s} if delay_s else {}
        await _create(world, "shop", _COUNT)
        await world.until_equal(lambda: _delivered(world, "shop"), dict.fromkeys(NAMES, _COUNT))
        refused = [message for _, message in await world.events() if "not found" in message]
        assert not refused
        for member in world.members.values():
            sent = [call for call in member.line.calls if call[1] == "configmaps" and call[2].startswith("cm-")]
            assert Counter(verb for verb, *_ in sent) == {"patch": _COUNT}, "one request for each object"


async def test_nothing_waits_for_a_namespace_that_every_cluster_has() -> None:
    async with a_world_without_pods() as world:
        kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        policy = a_policy(dict.fromkeys(NAMES, 1), schedulingMode="Duplicate", resourceSelectors=kinds)
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(CONFIGMAPS, _settings("default", 0))
        await world.pass_time(5)
        assert await _delivered(world, "default") == dict.fromkeys(NAMES, 1)
