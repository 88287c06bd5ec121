"""StatefulSets and Jobs are divided: pods keep their names, completions add up, and nothing runs twice in silence."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import CONFIGMAPS, JOBS, PODS, STATEFUL_SETS, Object
from federation.controllers.schedule.names import EVENT_SCHEDULING_FAILED
from federation.features.types.shippedtypes import ensure_types

_EVEN = {"east": 1, "north": 1}


def _policy(api_version: str, kind: str, weights: Mapping[str, int] = _EVEN) -> Object:
    return a_policy(weights, resourceSelectors=[{"apiVersion": api_version, "kind": kind}])


def _template(**spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": "db:1"}], **spec},
    }


def _stateful_set(replicas: int) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": _template(),
        },
    }


def _job(**spec: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "crunch", "namespace": "default"},
        "spec": {"template": _template(restartPolicy="Never"), **spec},
    }


async def _pods(world: World) -> dict[str, dict[str, str]]:
    """Return the names of the pods in each member, with their uids."""
    found = {}
    for name, member in world.members.items():
        pods = [pod for pod in (await member.admin.list(PODS)).items if not pod["metadata"].get("deletionTimestamp")]
        if pods:
            found[name] = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}
    return found


async def _names(world: World) -> dict[str, list[str]]:
    return {cluster: sorted(pods) for cluster, pods in (await _pods(world)).items()}


async def test_a_divided_stateful_set_numbers_its_pods_apart_and_never_again() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, _policy("apps/v1", "StatefulSet"))
        await world.create(STATEFUL_SETS, _stateful_set(4))
        apart = {"east": ["db-0", "db-1"], "north": ["db-1000", "db-1001"]}
        await world.until_equal(lambda: _names(world), apart)
        before = await _pods(world)

        # Growth in one cluster and the arrival of another leave the pods of the others alone.
        weights = {"east": 1, "north": 1, "west": 1}
        placement = [{"cluster": name, "preferences": {"weight": weight}} for name, weight in weights.items()]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})
        await world.merge(STATEFUL_SETS, "db", {"spec": {"replicas": 6}})
        wider = {**apart, "west": ["db-2000", "db-2001"]}
        await world.until_equal(lambda: _names(world), wider)
        after = await _pods(world)
        assert {cluster: after[cluster] for cluster in before} == before

        async def ready() -> Any:
            return (await world.user.get(STATEFUL_SETS, "db", "default")).get("status", {}).get("readyReplicas")

        await world.until_equal(ready, 6)
        await world.settle()

        # A federated object that is made anew gives every cluster the ordinals that it has.
        await world.user.delete(FEDERATED_OBJECTS, "db-statefulsets.apps", "default")
        await world.settle()
        await world.until_equal(lambda: _names(world), wider)


async def test_a_canary_leaves_as_many_pods_as_its_partition_says() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(PROPAGATION_POLICIES, _policy("apps/v1", "StatefulSet"))
        await world.create(STATEFUL_SETS, _stateful_set(4))

        async def images() -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            for name, member in world.members.items():
                for pod in sorted((await member.admin.list(PODS)).items, key=lambda pod: str(pod["metadata"]["name"])):
                    found.setdefault(name, []).append(pod["spec"]["containers"][0]["image"])
            return found

        await world.until_equal(images, {"east": ["db:1"] * 2, "north": ["db:1"] * 2})
        canary = {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}
        template = _template(containers=[{"name": "main", "image": "db:2"}])
        await world.merge(STATEFUL_SETS, "db", {"spec": {"updateStrategy": canary, "template": template}})
        await world.until_equal(images, {"east": ["db:1"] * 2, "north": ["db:1", "db:2"]})
        await world.merge(STATEFUL_SETS, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await world.until_equal(images, {"east": ["db:2"] * 2, "north": ["db:2"] * 2})


async def test_the_completions_of_a_job_add_up_over_its_clusters() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(PROPAGATION_POLICIES, _policy("batch/v1", "Job", {"east": 3, "north": 1}))
        await world.create(JOBS, _job(completions=8, parallelism=4))

        async def shares() -> Any:
            found = {name: await member.find(JOBS, "crunch") for name, member in world.members.items()}
            return {n: (j["spec"]["parallelism"], j["spec"]["completions"]) for n, j in found.items() if j}

        await world.until_equal(shares, {"east": (3, 6), "north": (1, 2)})

        async def outcome() -> Any:
            status = (await world.user.get(JOBS, "crunch", "default")).get("status") or {}
            complete = conditions.find(status.get("conditions"), "Complete") or {}
            return status.get("succeeded"), complete.get("status")

        await world.until_equal(outcome, (8, "True"))


async def test_an_indexed_job_that_is_no_gang_is_refused_with_a_condition_and_an_event() -> None:
    async with a_world(members=("east", "north")) as world:
        policy = _policy("batch/v1", "Job")
        await world.create(PROPAGATION_POLICIES, {**policy, "spec": {**policy["spec"], "gang": "Never"}})
        await world.create(JOBS, _job(completions=2, parallelism=2, completionMode="Indexed"))

        async def scheduled() -> Any:
            status = (await world.user.get(JOBS, "crunch", "default")).get("status") or {}
            found = conditions.find(status.get("conditions"), names.SCHEDULED) or {}
            return found.get("status"), found.get("reason")

        await world.until_equal(scheduled, ("False", "CannotDivide"))
        messages = [text for reason, text in await world.events() if reason == EVENT_SCHEDULING_FAILED]
        assert any("the indexes of an Indexed Job cannot be divided" in text for text in messages)
        assert await _pods(world) == {}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"maxClusters": 1}})
        await world.until_equal(scheduled, ("True", "Scheduled"))


async def test_a_host_of_an_earlier_version_divides_stateful_sets_after_the_next_start() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.merge(FEDERATED_TYPE_CONFIGS, "statefulsets.apps", {"spec": {"pathDefinition": None}})
        await world.user.delete(CONFIGMAPS, names.SHIPPED_TYPES, names.SYSTEM_NAMESPACE)
        await world.create(PROPAGATION_POLICIES, _policy("apps/v1", "StatefulSet"))
        await world.create(STATEFUL_SETS, _stateful_set(4))
        await world.settle()
        assert await _names(world) == {}
        await world.stop()
        await ensure_types(world.user)
        await world.restart()
        await world.until_equal(lambda: _names(world), {"east": ["db-0", "db-1"], "north": ["db-1000", "db-1001"]})
