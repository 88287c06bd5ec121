"""The status of policies counts the objects that they apply to, with few writes, and the same after a restart."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object, Resource

SELECTS_DEPLOYMENTS = [{"apiVersion": "apps/v1", "kind": "Deployment"}]


def _cluster_wide(policy: Object, kind: str) -> Object:
    metadata = {"name": policy["metadata"]["name"]}
    return {**policy, "kind": kind, "metadata": metadata}


def _counts(**counts: int) -> Object:
    typed = [
        {"group": "apps" if plural == "deployments" else "", "resource": plural, "count": count}
        for plural, count in sorted(counts.items())
    ]
    return {"refCount": sum(counts.values()), "typedRefCount": typed}


async def _status(world: World, resource: Resource, name: str) -> Any:
    policy = await world.find(resource, name)
    return (policy or {}).get("status")


async def _becomes(world: World, resource: Resource, name: str, expected: Object) -> None:
    await world.until_equal(lambda: _status(world, resource, name), expected)


def _a_configmap(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "data": {"a": "b"}}


async def test_each_kind_of_policy_counts_its_objects_by_resource() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, resourceSelectors=SELECTS_DEPLOYMENTS))
        wide = _cluster_wide(a_policy({}, name="wide"), "ClusterPropagationPolicy")
        await world.create(CLUSTER_PROPAGATION_POLICIES, wide)
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/minReadySeconds", 5))
        override = an_override("east", "/spec/minReadySeconds", 6)
        override["spec"]["resourceSelectors"] = SELECTS_DEPLOYMENTS
        await world.create(CLUSTER_OVERRIDE_POLICIES, _cluster_wide(override, "ClusterOverridePolicy"))
        for resource, name in (
            (PROPAGATION_POLICIES, "divide"),
            (CLUSTER_PROPAGATION_POLICIES, "wide"),
            (OVERRIDE_POLICIES, override["metadata"]["name"]),
            (CLUSTER_OVERRIDE_POLICIES, override["metadata"]["name"]),
        ):
            await _becomes(world, resource, name, _counts())

        await world.create(DEPLOYMENTS, a_deployment("web"))
        await world.create(CONFIGMAPS, _a_configmap("one", **{names.CLUSTER_PROPAGATION_POLICY_LABEL: "wide"}))
        await world.create(CONFIGMAPS, _a_configmap("two", **{names.PROPAGATION_POLICY_LABEL: "divide"}))
        await world.create(CONFIGMAPS, _a_configmap("none"))
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts(configmaps=1, deployments=1))
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts(configmaps=1))
        await _becomes(world, CLUSTER_OVERRIDE_POLICIES, override["metadata"]["name"], _counts(deployments=1))

        # A label moves an object from one policy to another, and a deletion ends its use.
        label = {names.PROPAGATION_POLICY_LABEL: None, names.CLUSTER_PROPAGATION_POLICY_LABEL: "wide"}
        await world.merge(CONFIGMAPS, "two", {"metadata": {"labels": label}})
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts())
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts(configmaps=2))


async def test_a_policy_that_appears_changes_or_goes_takes_its_objects_from_others() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        wide = a_policy({}, name="wide", resourceSelectors=SELECTS_DEPLOYMENTS)
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide(wide, "ClusterPropagationPolicy"))
        await world.create(DEPLOYMENTS, a_deployment("web"))
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts(deployments=1))
        await world.create(PROPAGATION_POLICIES, a_policy({}, name="near", resourceSelectors=SELECTS_DEPLOYMENTS))
        await _becomes(world, PROPAGATION_POLICIES, "near", _counts(deployments=1))
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts())
        await world.merge(PROPAGATION_POLICIES, "near", {"spec": {"resourceSelectors": None}})
        await _becomes(world, PROPAGATION_POLICIES, "near", _counts())
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts(deployments=1))
        await world.user.delete(CLUSTER_PROPAGATION_POLICIES, "wide")
        await world.settle()
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide(wide, "ClusterPropagationPolicy"))
        await _becomes(world, CLUSTER_PROPAGATION_POLICIES, "wide", _counts(deployments=1))


async def test_a_policy_that_preempts_nobody_leaves_objects_where_they_are_also_over_a_restart() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        old = a_policy({}, name="old", resourceSelectors=SELECTS_DEPLOYMENTS)
        await world.create(PROPAGATION_POLICIES, old)
        await world.create(DEPLOYMENTS, a_deployment("first"))
        await _becomes(world, PROPAGATION_POLICIES, "old", _counts(deployments=1))
        await world.settle()
        new = a_policy({}, name="new", resourceSelectors=SELECTS_DEPLOYMENTS, priority=5, preemption="Never")
        await world.create(PROPAGATION_POLICIES, new)
        await world.create(DEPLOYMENTS, a_deployment("second"))
        await _becomes(world, PROPAGATION_POLICIES, "new", _counts(deployments=1))
        await _becomes(world, PROPAGATION_POLICIES, "old", _counts(deployments=1))
        await world.restart()
        await world.settle()
        assert (await _status(world, PROPAGATION_POLICIES, "old"))["refCount"] == 1

        await world.merge(PROPAGATION_POLICIES, "new", {"spec": {"preemption": "Always"}})
        await _becomes(world, PROPAGATION_POLICIES, "new", _counts(deployments=2))
        await _becomes(world, PROPAGATION_POLICIES, "old", _counts())


async def test_a_burst_of_objects_is_one_write_and_a_restart_is_none() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts())
        before = await world.user.get(PROPAGATION_POLICIES, "divide", "default")
        label = {names.PROPAGATION_POLICY_LABEL: "divide"}
        for number in range(100):
            await world.create(CONFIGMAPS, _a_configmap(f"c{number}", **label))
        since = await world.store.revision()
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts(configmaps=100))
        await world.settle()
        after = await world.user.get(PROPAGATION_POLICIES, "divide", "default")
        writes = [text for text in world.changes("", since) if "propagationpolicies/default/divide" in text]
        assert 1 <= len(writes) <= 2, writes
        assert before["metadata"]["generation"] == after["metadata"]["generation"]

        await world.pass_time(20)  # the CollectedStatuses of a burst are written later than the rest
        settled = await world.revisions()
        await world.restart()
        await world.pass_time(20)
        assert (await world.revisions())[""] == settled[""]
        # A status that somebody else wrote is corrected once.
        wrong = {"status": {"refCount": 7}}
        await world.user.patch(PROPAGATION_POLICIES, "divide", wrong, namespace="default", subresource="status")
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts(configmaps=100))


async def test_the_objects_of_a_kind_that_is_not_federated_any_more_do_not_count() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(CONFIGMAPS, _a_configmap("one", **{names.PROPAGATION_POLICY_LABEL: "divide"}))
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts(configmaps=1))
        orphan = {"metadata": {"annotations": {names.ORPHAN: "all"}}}
        await world.merge(FEDERATED_TYPE_CONFIGS, "configmaps", orphan)
        await world.user.delete(FEDERATED_TYPE_CONFIGS, "configmaps")
        await _becomes(world, PROPAGATION_POLICIES, "divide", _counts())
