"""Attack: users who may write WorkloadSpreads or pods of one namespace stop the service, or change pods of others."""

from collections import Counter
from typing import Any

import pytest
from tests.attacks.test_member_limits import Hostile, run_for
from tests.support.memberspreads import a_node, a_spread, a_subset, create_spread, subset_sizes
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object
from tests.support.spreads import REPLICA_SET, a_pod

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ApiError, BadRequest
from federation.apimachinery.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Object
from federation.apimachinery.resources import NODES as NODE_OBJECTS
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.client.client import Client, WatchEvent, WatchEventType
from federation.features.workloadspread.incluster.service import slim_spread
from federation.features.workloadspread.names import MATCHED_WORKLOAD_SPREAD
from federation.features.workloadspread.rules.adoption import adoption_patch
from federation.features.workloadspread.rules.injection import inject_subset, is_released
from federation.features.workloadspread.rules.specvalidation import (
    PATCH_LEVELS_MAX,
    SPEC_BYTES_MAX,
    SUBSETS_MAX,
    exceeded_limit,
)
from federation.runtime.informer import Informer

POD: Object = {
    "metadata": {"generateName": "web-", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": []},
    "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
}
POD["metadata"]["ownerReferences"].append({**REPLICA_SET, "uid": "u-1"})
NODES = [a_node("a", "base"), a_node("b", "elastic")]


def injected(patch: Any) -> Object:
    return inject_subset(POD, "ws", {"name": "a", "patch": patch}, patch_pod)


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"ownerReferences": [{"uid": "u-1", "controller": False}]}},
        {"metadata": {"name": "other", "namespace": "kube-system", "generateName": "x-", "uid": "u-2"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}},
        {"metadata": {"$patch": "replace", "labels": {"app": "web"}}},
        {"metadata": None},
    ],
)
def test_a_patch_changes_neither_the_owner_nor_the_name_of_a_pod(patch: Object) -> None:
    """Without its owner a pod is not counted by its controller, which creates another one, without end."""
    changed = ("labels", "annotations", "finalizers")
    before, after = (
        {key: value for key, value in pod["metadata"].items() if key not in changed} for pod in (POD, injected(patch))
    )
    assert after == before


@pytest.mark.parametrize(
    "patch",
    [
        *("x", 5, [1], {"metadata": "x"}, {"metadata": {"labels": "x"}}, {"metadata": {"annotations": ["x"]}}),
        *({"spec": None}, {"spec": "x"}, {"$patch": "delete"}, {"$patch": "replace"}, {"spec": {"containers": [1]}}),
    ],
    ids=str,
)
def test_a_malformed_patch_is_an_error_of_the_user(patch: Any) -> None:
    with pytest.raises(ApiError):
        injected(patch)
    spread: Object = {"metadata": {"name": "ws"}}
    assert set(adoption_patch(spread, {"name": "a", "patch": patch})["metadata"]) <= {"annotations", "labels"}


@pytest.mark.parametrize("labels", [None, {"app": None}, {"app": "db"}, {"$patch": "replace", "x": "y"}], ids=str)
def test_a_patch_that_hides_a_pod_from_its_controller_is_found(labels: Any) -> None:
    patch = {"metadata": {"labels": labels}}
    owner = {"spec": {"selector": {"matchLabels": {"app": "web"}}}}
    assert is_released(owner, POD, injected(patch))
    assert not is_released(None, POD, injected(patch))
    assert not is_released(owner, POD, injected({"metadata": {"labels": {"more": "x"}}}))


@pytest.mark.parametrize("selector", [None, "x", {"matchExpressions": [{"key": "app", "operator": "?"}]}], ids=str)
def test_a_selector_that_cannot_be_read_releases_no_pod(selector: Any) -> None:
    assert not is_released({"spec": {"selector": selector}}, POD, injected({"metadata": {"labels": None}}))


async def test_a_patch_without_the_labels_of_the_selector_creates_no_endless_pods() -> None:
    async with a_member(NODES, spread_services=1) as member:
        subset = a_subset("all", required=False, patch={"metadata": {"labels": {"app": None}}})
        await create_spread(member, a_spread(subset))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=3))
        await member.pass_time(10)
        assert await member.names(PODS) == []


async def test_adoption_does_not_hide_running_pods_from_their_controller() -> None:
    async with a_member(NODES, spread_services=1) as member:
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=3))
        await member.until_equal(lambda: _count(member), 3)
        before = await member.names(PODS)
        hiding = {"metadata": {"labels": {"app": None}, "ownerReferences": None}}
        spread = a_spread(a_subset("all", required=False, patch=hiding))
        with pytest.raises(BadRequest, match="selector of the Deployment does not match"):
            await create_spread(member, spread)
        await member.delete(DEPLOYMENTS, "web", propagation_policy="Orphan")
        await member.until(lambda: _is_gone(member))
        await create_spread(member, spread)
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=3))
        await member.pass_time(5)
        pods = await member.all(PODS)
        assert [pod["metadata"]["name"] for pod in pods] == before
        assert {pod["metadata"]["labels"]["app"] for pod in pods} == {"web"}


async def _is_gone(member: Member) -> bool:
    return not await member.exists(DEPLOYMENTS, "web")


async def _count(member: Member) -> int:
    return len(await member.ready_pods())


async def test_a_forged_annotation_frees_no_place_of_another_workload() -> None:
    """Pods that are no pods of the target say in their annotation that they are; each deletion would free a place."""
    async with a_member(NODES, spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 3), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=5))
        await member.until_equal(lambda: subset_sizes(member), Counter(base=3, elastic=2))
        await member.pass_time(2)  # the controller has counted the pods
        before = await member.all(WORKLOAD_SPREADS)
        (replica_set,) = await member.all(REPLICA_SETS)
        version = replica_set["metadata"]["labels"]["pod-template-hash"]
        forged = a_pod("forged", "base")["metadata"]["annotations"][MATCHED_WORKLOAD_SPREAD].replace("ws", "web")
        node = await member.get(NODE_OBJECTS, "a")
        owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": node["metadata"]["uid"], "controller": True}
        metadata = {
            "labels": {"pod-template-hash": version},
            "annotations": {MATCHED_WORKLOAD_SPREAD: forged},
            "ownerReferences": [owner],
        }
        for name in ("forged-1", "forged-2"):
            await member.create(PODS, an_object(PODS, name, metadata=metadata, spec=a_template()["spec"]))
            await member.delete(PODS, name)
        assert await member.all(WORKLOAD_SPREADS) == before


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"subsets": [{"name": f"s-{n}"} for n in range(SUBSETS_MAX + 1)]}, "at most 128 subsets"),
        ({"subsets": [{"name": "a", "patch": {"metadata": {"annotations": {"a": "x" * SPEC_BYTES_MAX}}}}]}, "bytes"),
        ({"targetFilter": {"selector": {"matchLabels": {f"k{n}": "v" for n in range(20_000)}}}}, "bytes"),
    ],
    ids=["subsets", "patch", "selector"],
)
async def test_a_huge_object_is_refused_and_ignored_when_it_was_not_refused(spec: Object, text: str) -> None:
    whole = a_spread(a_subset("a", 1), a_subset("b"))
    huge = {**whole, "spec": {**whole["spec"], **spec}}
    assert exceeded_limit(whole) == ("", "")
    assert text in exceeded_limit(huge)[1]
    async with a_member(NODES, spread_services=1) as member:
        with pytest.raises(BadRequest, match=text):
            await create_spread(member, huge)


@pytest.mark.parametrize("levels", [PATCH_LEVELS_MAX, PATCH_LEVELS_MAX + 1, 600, 5_000])
def test_a_patch_that_is_nested_too_deeply_is_found(levels: int) -> None:
    subsets = [{"name": "a"}, {"name": "b", "patch": nested(levels)}]
    excess = ("spec.subsets[1].patch", f"must have at most {PATCH_LEVELS_MAX} levels")
    assert exceeded_limit({"spec": {"subsets": subsets}}) == (("", "") if levels == PATCH_LEVELS_MAX else excess)


def test_anything_that_cannot_be_written_as_json_is_too_large() -> None:
    target_filter = {"selector": {"matchLabels": nested(600)}}
    assert exceeded_limit({"spec": {"targetFilter": target_filter}}) == ("spec", "is nested too deeply")


async def test_the_service_leaves_out_an_object_that_cannot_be_written_and_spreads_the_others() -> None:
    deep, plain = (
        {
            **a_spread(a_subset("a", patch=patch), name=name),
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "5"},
        }
        for name, patch in (("deep", nested(900)), ("plain", nested(3)))
    )

    page = {"metadata": {"resourceVersion": "9"}, "items": [deep, plain]}
    events = [WatchEvent(WatchEventType.MODIFIED, {**deep, "metadata": {**deep["metadata"], "resourceVersion": "10"}})]
    clock = ManualClock()
    informer = Informer(
        Client(Hostile(lambda _: page, events)), WORKLOAD_SPREADS, cluster="east", clock=clock, transform=slim_spread
    )
    await run_for(informer, clock, 2)
    assert [spread["metadata"]["name"] for spread in informer.list()] == ["plain"]


def nested(levels: int) -> Object:
    """Return mappings within mappings."""
    found: Object = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


async def test_many_workload_spreads_do_not_slow_the_admission_of_other_pods_down() -> None:
    """The selectors of others are not read: a pod is looked up by its controllers."""
    async with a_member(NODES, spread_services=1) as member:
        heavy = {"matchExpressions": [{"key": f"k{n}", "operator": "NotIn", "values": ["a"]} for n in range(50)]}
        for number in range(30):
            other = a_spread(a_subset("a", 1, required=False), name=f"other-{number}", targetFilter={"selector": heavy})
            other["spec"]["targetRef"]["name"] = f"other-{number}"
            await create_spread(member, other)
        await create_spread(member, a_spread(a_subset("base", 2), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: subset_sizes(member), Counter(base=2, elastic=2))
