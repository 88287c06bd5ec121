"""A StatefulSet is deleted with --cascade=orphan and created again over members as in one cluster: its pods stay."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import PODS, STATEFUL_SETS, Object
from federation.delivery.rules.names import ORPHANED

MEMBERS = ("east", "north")


def _stateful_set(storage: str, *, image: str = "db:1") -> Object:
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }


async def _pods(world: World) -> dict[str, list[str]]:
    return {
        name: [pod["metadata"]["uid"] for pod in (await member.admin.list(PODS)).items]
        for name, member in world.members.items()
    }


async def _storage(world: World) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, member in world.members.items():
        live = await member.find(STATEFUL_SETS, "db")
        if live is not None and (live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true":
            claim = live["spec"]["volumeClaimTemplates"][0]["spec"]
            found[name] = claim["resources"]["requests"]["storage"]
    return found


async def _ready(world: World) -> Any:
    return (await world.user.get(STATEFUL_SETS, "db", "default")).get("status", {}).get("readyReplicas")


async def _begin(world: World) -> dict[str, list[str]]:
    kinds = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]
    policy = a_policy(dict.fromkeys(MEMBERS, 1), resourceSelectors=kinds, schedulingMode="Duplicate")
    await world.create(PROPAGATION_POLICIES, policy)
    await world.create(STATEFUL_SETS, _stateful_set("1Gi"))

    await world.until_equal(lambda: _ready(world), 2)
    await world.settle()
    before = await _pods(world)
    await world.user.delete(STATEFUL_SETS, "db", "default", propagation_policy="Orphan")
    await world.until_gone(STATEFUL_SETS, "db")
    await world.settle()
    assert await _pods(world) == before
    return before


async def test_volume_claim_templates_change_and_the_pods_stay() -> None:
    async with a_world(members=MEMBERS) as world:
        before = await _begin(world)
        await world.create(STATEFUL_SETS, _stateful_set("2Gi"))
        await world.until_equal(lambda: _storage(world), dict.fromkeys(MEMBERS, "2Gi"))
        await world.until_equal(lambda: _ready(world), 2)
        await world.settle()
        assert await _pods(world) == before


async def test_one_that_can_be_updated_is_taken_back_as_it_is() -> None:
    async with a_world(members=MEMBERS) as world:
        before = await _begin(world)
        uids = {
            name: (await member.find(STATEFUL_SETS, "db"))["metadata"]["uid"] for name, member in world.members.items()
        }
        await world.create(STATEFUL_SETS, _stateful_set("1Gi"))
        await world.until_equal(lambda: _storage(world), dict.fromkeys(MEMBERS, "1Gi"))
        await world.settle()
        assert await _pods(world) == before
        for name, member in world.members.items():
            metadata = (await member.find(STATEFUL_SETS, "db"))["metadata"]
            assert metadata["uid"] == uids[name]
            assert ORPHANED not in metadata["annotations"]


async def test_one_of_the_member_is_not_taken() -> None:
    async with a_world(members=MEMBERS) as world:
        await world.members["east"].admin.create(STATEFUL_SETS, _marked())
        kinds = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]
        policy = a_policy({"east": 1}, resourceSelectors=kinds, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(STATEFUL_SETS, _stateful_set("1Gi"))

        async def status() -> Any:
            federated = await world.find(FEDERATED_OBJECTS, "db-statefulsets.apps") or {}
            return [entry["status"] for entry in (federated.get("status") or {}).get("clusters") or ()]

        await world.until_equal(status, ["AlreadyExists"])
        assert await _storage(world) == {}
        await world.user.delete(STATEFUL_SETS, "db", "default")
        await world.until_gone(STATEFUL_SETS, "db")


def _marked() -> Object:
    """Return a StatefulSet with a copy of our mark, which somebody else wrote."""
    obj = _stateful_set("2Gi")
    obj["metadata"]["annotations"] = {ORPHANED: "true"}
    return obj
