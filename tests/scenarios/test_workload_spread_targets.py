"""WorkloadSpreads of other workloads than Deployments: StatefulSets, Jobs and custom kinds."""

from collections import Counter
from typing import Any

import pytest
from tests.support.memberspreads import a_node, a_spread, a_subset, create_spread, pools, subset_sizes
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.api.crds import crd_manifests
from federation.api.resources import CLONE_SETS, WORKLOAD_SPREADS
from federation.apimachinery.errors import BadRequest, InternalError
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Object,
    Resource,
)

POOLS = (a_node("a", "base"), a_node("b", "elastic"))
GAMES = Resource("example.com", "v1", "Game", "games")


async def test_the_ordinals_of_a_stateful_set_choose_the_subset() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 2), a_subset("elastic"), kind="StatefulSet"))
        await member.create(STATEFUL_SETS, a_workload(STATEFUL_SETS, replicas=4, serviceName="web"))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=2))
        await member.delete(PODS, "web-1")
        await member.until(lambda: _is_terminating(member, "web-1"))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=2))
        (spread,) = await member.all(WORKLOAD_SPREADS)
        assert {name for status in spread["status"]["subsetStatuses"] for name in status} <= {
            "name", "replicas", "missingReplicas", "maxReplicas",
        }  # fmt: skip


async def _is_terminating(member: Member, name: str) -> bool:
    return not await member.exists(PODS, name) or "deletionTimestamp" in (await member.get(PODS, name))["metadata"]


async def test_finished_pods_of_a_job_give_their_place_back() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await create_spread(
            member, a_spread(a_subset("base", 1), a_subset("elastic"), kind="Job", api_version="batch/v1")
        )
        template = a_template(restartPolicy="Never")
        await member.create(
            JOBS, an_object(JOBS, "web", spec={"completions": 4, "parallelism": 2, "template": template})
        )
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=2))


async def test_a_custom_kind_needs_the_whitelist_and_is_counted_by_its_scale() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await member.create(_CRDS, a_definition())
        spread = a_spread(a_subset("base", "50%"), a_subset("elastic"), kind="Game", api_version="example.com/v1")
        with pytest.raises(BadRequest, match="not supported"):
            await create_spread(member, spread)
        await allow(member, '{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}')
        await create_spread(member, spread)
        game = await member.create(GAMES, an_object(GAMES, "web", spec={"replicas": 4}))
        for number in range(4):
            await member.create(PODS, a_pod(game, GAMES, f"web-{number}"))
        assert await subset_sizes(member) == Counter(base=2, elastic=2)
        await member.until_equal(lambda: sizes_in_status(member), [2, 2])
        # A percentage is taken of the replicas at the time of the admission.
        await member.merge(GAMES, "web", {"spec": {"replicas": 6}})
        await member.create(PODS, a_pod(game, GAMES, "web-4"))
        assert await subset_sizes(member) == Counter(base=3, elastic=2)


async def test_pods_of_a_clone_set_are_spread() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        definitions = [crd for crd in crd_manifests() if crd["metadata"]["name"] == CLONE_SETS.group_resource]
        await member.registry.install_crds(definitions)
        spread = a_spread(a_subset("base", 2), a_subset("elastic"), kind="CloneSet", api_version=CLONE_SETS.api_version)
        await create_spread(member, spread)
        await member.create(CLONE_SETS, a_workload(CLONE_SETS, replicas=5))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=3))
        await member.until_equal(lambda: sizes_in_status(member), [2, 3])
        await member.merge(CLONE_SETS, "web", {"spec": {"replicas": 3}})
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=1))


async def test_workloads_of_one_custom_object_share_the_limits() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await member.create(_CRDS, a_definition())
        await allow(member, '{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}')
        spread = a_spread(a_subset("base", 3), a_subset("elastic"), kind="Game", api_version="example.com/v1")
        await create_spread(member, spread)
        game = await member.create(GAMES, an_object(GAMES, "web", spec={"replicas": 6}))
        await member.pass_time(1)
        owner = controller_reference(game, GAMES.api_version, GAMES.kind)
        for name in ("blue", "green"):
            template = a_template()
            template["metadata"]["labels"]["color"] = name
            workload = a_workload(REPLICA_SETS, name, template, replicas=3)
            workload["spec"]["selector"]["matchLabels"]["color"] = name
            workload["metadata"]["ownerReferences"] = [owner]
            await member.create(REPLICA_SETS, workload)
        await member.until_equal(lambda: pools(member), Counter(base=3, elastic=3))
        colors = Counter(pod["metadata"]["labels"]["color"] for pod in await member.all(PODS))
        assert colors == Counter(blue=3, green=3)


async def test_a_malformed_whitelist_changes_nothing() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await allow(member, '{"workloads": 1}')
        with pytest.raises(BadRequest, match="not supported"):
            await create_spread(member, a_spread(a_subset("base"), kind="Game", api_version="example.com/v1"))


async def test_a_pod_whose_controller_does_not_exist_is_refused_where_pods_are_spread() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        owner = {
            "metadata": {"name": "web-1", "uid": "u-1", "namespace": "default"},
            "spec": {"template": a_template()},
        }
        await member.create(PODS, a_pod(owner, REPLICA_SETS, "early"))
        await create_spread(member, a_spread(a_subset("base", 1), a_subset("elastic")))
        await member.pass_time(1)
        with pytest.raises(InternalError, match="controller of the pod does not exist"):
            await member.create(PODS, a_pod(owner, REPLICA_SETS, "late"))
        await member.create(PODS, an_object(PODS, "alone", spec=a_template()["spec"]))


async def test_only_pods_with_the_labels_of_the_filter_are_spread() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        spread = a_spread(a_subset("base"), targetFilter={"selector": {"matchLabels": {"app": "another"}}})
        await create_spread(member, spread)
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=2))
        await member.until_equal(lambda: _count_ready(member), 2)
        assert await subset_sizes(member) == Counter()


async def _count_ready(member: Member) -> int:
    return len(await member.ready_pods())


async def test_a_removed_subset_loses_its_pods_first() -> None:
    async with a_member(POOLS, spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 2), a_subset("elastic", 2)))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=2))
        await member.merge(WORKLOAD_SPREADS, "web", {"spec": {"subsets": [a_subset("elastic")]}})
        await member.pass_time(2)
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
        await member.until_equal(lambda: pools(member), Counter(elastic=2))


async def allow(member: Member, whitelist: str) -> None:
    """Write the whitelist of custom workloads, and wait until it is in force."""
    await member.create(NAMESPACES, an_object(NAMESPACES, "kruise-system"))
    metadata = {"namespace": "kruise-system"}
    data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": whitelist}
    await member.create(CONFIGMAPS, an_object(CONFIGMAPS, "kruise-configuration", metadata=metadata, data=data))
    await member.pass_time(1)


def a_pod(owner: Object, resource: Resource, name: str) -> Object:
    reference = controller_reference(owner, resource.api_version, resource.kind)
    metadata = {"labels": {"app": "web"}, "ownerReferences": [reference]}
    return an_object(PODS, name, metadata=metadata, spec=a_template()["spec"])


async def sizes_in_status(member: Member) -> list[int]:
    (spread,) = await member.all(WORKLOAD_SPREADS)
    return [status["replicas"] for status in (spread.get("status") or {}).get("subsetStatuses") or ()]


_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def a_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": paths},
    }
    names = {"kind": "Game", "plural": "games"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "games.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
