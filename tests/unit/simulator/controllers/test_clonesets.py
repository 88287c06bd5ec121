"""CloneSets in a simulated member."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.simulatedmember import Member, a_member, a_template, a_workload

from federation.api.crds import crd_manifests
from federation.api.resources import CLONE_SETS
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.simulator.controllers import cloning
from federation.simulator.controllers.cloning import Scope, Step

NOW = from_rfc3339("2026-01-01T00:01:00Z")
DEFINITIONS = [crd for crd in crd_manifests() if crd["metadata"]["name"] == CLONE_SETS.group_resource]


def a_clone_set(replicas: int = 3, **spec: Any) -> Object:
    return a_workload(CLONE_SETS, "web", replicas=replicas, **spec)


@asynccontextmanager
async def a_kruise_member() -> AsyncIterator[Member]:
    async with a_member() as member:
        await member.registry.install_crds(DEFINITIONS)
        yield member


async def until_updated(member: Member, count: int, updated: int | None = None) -> Object:
    """Wait until all pods are available and so many of them updated; return the status."""

    async def look() -> Object | None:
        found = await member.get(CLONE_SETS, "web")
        status = found.get("status") or {}
        is_newest = status.get("observedGeneration") == found["metadata"]["generation"]
        is_done = is_newest and status["availableReplicas"] == status["replicas"] == count
        return (
            status
            if is_done and status["updatedAvailableReplicas"] == (count if updated is None else updated)
            else None
        )

    return await member.until(look) or {}


async def images(member: Member) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await member.all(PODS)}


def an_image(image: str, **strategy: Any) -> Object:
    template = a_template()
    template["spec"]["containers"][0]["image"] = image
    return {"spec": {"template": template, "updateStrategy": strategy}}


async def test_pods_have_an_instance_label_and_a_revision() -> None:
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(3))
        status = await until_updated(member, 3)
        assert status["expectedUpdatedReplicas"] == status["readyReplicas"] == 3
        assert status["currentRevision"] == status["updateRevision"]
        assert status["labelSelector"] == "app=web"
        for pod in await member.all(PODS):
            labels, name = pod["metadata"]["labels"], pod["metadata"]["name"]
            assert name == f"web-{labels['apps.kruise.io/cloneset-instance-id']}"
            assert labels["controller-revision-hash"] == status["updateRevision"]


async def test_the_kind_can_be_defined_later() -> None:
    async with a_member() as member:
        await member.pass_time(2)
        await member.registry.install_crds(DEFINITIONS)
        await member.create(CLONE_SETS, a_clone_set(1))
        await until_updated(member, 1)


async def test_a_new_image_keeps_the_pods_that_may_be_updated_in_place() -> None:
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(5, updateStrategy={"type": "InPlaceIfPossible"}))
        await until_updated(member, 5)
        before = {pod["metadata"]["uid"] for pod in await member.all(PODS)}
        await member.merge(CLONE_SETS, "web", an_image("nginx:2", type="InPlaceIfPossible"))

        async def look() -> bool:
            assert len(await member.ready_pods()) >= 4, "20 % may be unavailable"
            return set((await images(member)).values()) == {"nginx:2"}

        await member.until(look)
        status = await until_updated(member, 5)
        assert status["currentRevision"] == status["updateRevision"]
        pods = await member.all(PODS)
        assert {pod["metadata"]["uid"] for pod in pods} == before
        assert {pod["status"]["containerStatuses"][0]["image"] for pod in pods} == {"nginx:2"}
        assert {pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods} == {1}


async def test_labels_and_annotations_change_in_place_without_a_restart() -> None:
    async with a_kruise_member() as member:
        template = a_template(annotations={"removed": "yes", "kept": "yes"})
        await member.create(CLONE_SETS, a_clone_set(2, template=template, updateStrategy={"type": "InPlaceOnly"}))
        await until_updated(member, 2)
        before = await member.all(PODS)
        await member.client.patch(
            PODS, before[0]["metadata"]["name"], {"metadata": {"labels": {"own": "1"}}}, namespace="default"
        )
        changed = {"metadata": {"labels": {"version": "2"}, "annotations": {"removed": None, "added": "yes"}}}
        await member.merge(CLONE_SETS, "web", {"spec": {"template": changed}})
        await until_updated(member, 2)
        after = await member.all(PODS)
        assert [pod["metadata"]["uid"] for pod in after] == [pod["metadata"]["uid"] for pod in before]
        assert {pod["metadata"]["labels"]["version"] for pod in after} == {"2"}
        assert [pod["metadata"]["labels"].get("own") for pod in after] == ["1", None]
        for pod in after:
            annotations = pod["metadata"]["annotations"]
            assert {key: annotations.get(key) for key in ("removed", "kept", "added")} == {
                "removed": None,
                "kept": "yes",
                "added": "yes",
            }
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_any_other_change_replaces_the_pods_or_nothing() -> None:
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(2, updateStrategy={"type": "InPlaceIfPossible"}))
        await until_updated(member, 2)
        before = await images(member)
        await member.merge(CLONE_SETS, "web", {"spec": {"template": a_template(cpu="200m")}})
        await until_updated(member, 2)
        after = await images(member)
        assert not before.keys() & after.keys()
        change = {"spec": {"template": a_template(cpu="300m"), "updateStrategy": {"type": "InPlaceOnly"}}}
        await member.merge(CLONE_SETS, "web", change)
        await until_updated(member, 2, updated=0)
        await member.pass_time(5)
        assert await images(member) == after


async def test_a_partition_keeps_old_pods_also_when_pods_are_added() -> None:
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(4))
        await until_updated(member, 4)
        await member.merge(CLONE_SETS, "web", an_image("nginx:2", partition="75%"))
        status = await until_updated(member, 4, updated=1)
        assert status["expectedUpdatedReplicas"] == 1
        assert status["currentRevision"] != status["updateRevision"]
        await member.merge(CLONE_SETS, "web", {"spec": {"replicas": 8}})
        await until_updated(member, 8, updated=2)
        assert sorted((await images(member)).values()) == ["nginx:1"] * 6 + ["nginx:2"] * 2
        await member.merge(CLONE_SETS, "web", {"spec": {"updateStrategy": {"partition": 0, "paused": True}}})
        await member.pass_time(5)
        assert sorted((await images(member)).values()) == ["nginx:1"] * 6 + ["nginx:2"] * 2
        await member.merge(CLONE_SETS, "web", {"spec": {"updateStrategy": {"paused": False}}})
        await until_updated(member, 8)


async def test_surge_adds_pods_before_it_removes_any() -> None:
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(3))
        await until_updated(member, 3)
        await member.merge(CLONE_SETS, "web", an_image("nginx:2", maxSurge=1, maxUnavailable=0))
        most = 0

        async def look() -> bool:
            nonlocal most
            assert len(await member.ready_pods()) >= 3
            most = max(most, (await member.status(CLONE_SETS, "web"))["replicas"])
            return set((await images(member)).values()) == {"nginx:2"}

        await member.until(look)
        await until_updated(member, 3)
        assert most == 4


async def test_named_pods_go_and_take_their_claims_with_them() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    async with a_kruise_member() as member:
        await member.create(CLONE_SETS, a_clone_set(3, volumeClaimTemplates=[claim]))
        await until_updated(member, 3)
        first, second, third = await member.names(PODS)
        assert await member.names(PERSISTENT_VOLUME_CLAIMS) == [f"data-{name}" for name in (first, second, third)]
        await member.merge(CLONE_SETS, "web", {"spec": {"scaleStrategy": {"podsToDelete": [second]}}})

        async def is_replaced() -> bool:
            names = await member.names(PODS)
            return second not in names and len(names) == 3

        await member.until(is_replaced)
        await until_updated(member, 3)
        await member.merge(CLONE_SETS, "web", {"spec": {"replicas": 2, "scaleStrategy": {"podsToDelete": [third]}}})
        await member.until_equal(lambda: _has(member, third), expected=False)
        await until_updated(member, 2)
        names = await member.names(PODS)
        assert first in names

        async def claims() -> list[str]:
            return await member.names(PERSISTENT_VOLUME_CLAIMS)

        await member.until_equal(claims, sorted(f"data-{name}" for name in names))


async def _has(member: Member, pod: str) -> bool:
    return pod in await member.names(PODS)


async def test_an_autoscaler_scales_it() -> None:
    async with a_kruise_member() as member:
        clone_set = a_clone_set(2)
        clone_set["metadata"]["annotations"] = {"simulator.kubeadmiral.io/cpu-load": "0s=400m"}
        await member.create(CLONE_SETS, clone_set)
        target = {"apiVersion": CLONE_SETS.api_version, "kind": CLONE_SETS.kind, "name": "web"}
        metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 100}}
        spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "Resource", "resource": metric}]}
        autoscaler = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        }
        await member.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler)
        await until_updated(member, 4)


# -- decisions


def a_pod(name: str, revision: str = "new", *, is_ready: bool = True) -> Object:
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {
            "name": name,
            "labels": {"controller-revision-hash": revision},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "node-1", "containers": []},
        "status": {"phase": "Running", "conditions": [ready]},
    }


def planned(spec: dict[str, Any], *pods: Object) -> Step:
    return cloning.plan_step(Scope.of({"spec": spec}), pods, "new", NOW)


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({"replicas": 0}, [], Step()),
        ({}, [], Step(create_updated=1)),
        ({"replicas": 3, "scaleStrategy": {"maxUnavailable": 1}}, [], Step(create_updated=1)),
        ({"replicas": 3, "updateStrategy": {"partition": 2}}, [], Step(create_updated=1, create_old=2)),
        ({"replicas": 1}, [a_pod("a"), a_pod("b", is_ready=False)], Step(delete=("b",))),
        ({"replicas": 1}, [a_pod("a"), a_pod("b", "old")], Step(delete=("b",))),
        ({"replicas": 1, "updateStrategy": {"partition": 1}}, [a_pod("a"), a_pod("b", "old")], Step(delete=("a",))),
        ({"replicas": 2}, [a_pod("a", "old"), a_pod("b", "old", is_ready=False)], Step(update=("b",))),
        ({"replicas": 1, "updateStrategy": {"maxUnavailable": 0}}, [a_pod("a", "old")], Step(update=("a",))),
        (
            {"replicas": 1, "scaleStrategy": {"podsToDelete": ["a"]}},
            [a_pod("a"), a_pod("b")],
            Step(delete=("a",)),
        ),
        (
            {"replicas": 2, "scaleStrategy": {"podsToDelete": ["a", "b"]}},
            [a_pod("a"), a_pod("b")],
            Step(delete=("a",)),
        ),
    ],
    ids=[
        "nothing",
        "the default is one",
        "no faster than the scale strategy allows",
        "the partition of new pods",
        "unready pods go first",
        "old pods go first",
        "old pods of the partition stay",
        "an unready pod is updated at once and uses up the budget",
        "without surge one pod may be unavailable",
        "a named pod goes first",
        "named pods go one after another",
    ],
)
def test_steps(spec: dict[str, Any], pods: list[Object], expected: Step) -> None:
    assert planned(spec, *pods) == expected


@given(
    replicas=st.integers(0, 6),
    partition=st.integers(0, 7),
    surge=st.integers(0, 2),
    unavailable=st.integers(0, 3),
    pods=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8),
)
def test_a_step_never_takes_more_pods_than_may_be_unavailable(
    replicas: int, partition: int, surge: int, unavailable: int, pods: list[tuple[bool, bool, bool]]
) -> None:
    built = [
        a_pod(f"p{number}", "new" if is_new else "old", is_ready=is_ready)
        for number, (is_new, is_ready, _) in enumerate(pods)
    ]
    named = [f"p{number}" for number, (_, _, is_named) in enumerate(pods) if is_named]
    strategy = {"partition": partition, "maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "updateStrategy": strategy, "scaleStrategy": {"podsToDelete": named}}
    step = planned(spec, *built)
    taken = {*step.delete, *step.update}
    assert len(taken) == len(step.delete) + len(step.update)
    ready = {pod["metadata"]["name"] for pod, (_, is_ready, _) in zip(built, pods, strict=True) if is_ready}
    allowed = unavailable or (0 if surge else 1)
    assert len(ready - taken) >= min(len(ready), replicas - allowed)
    assert len(built) + step.create_updated + step.create_old <= max(len(built), replicas + surge)
    old = [pod for pod in built if cloning.revision_of(pod) == "old"]
    stay = len([pod for pod in old if pod["metadata"]["name"] not in step.update])
    assert stay >= min(len(old), partition, replicas)
