"""Who leads a group of pods, and what is written on each pod of it."""

from collections.abc import Sequence
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import from_config
from federation.apimachinery.resources import Object
from federation.features.podgroups.rules import plan_records
from federation.planning.federatedobject.finished import run_of
from federation.planning.podgroups import POD_GROUP, GroupRef, PodGroup, group_of, size_of
from federation.planning.rendering.admittednodes import QUEUE_NODES
from federation.scheduling.jobqueues import ADMISSION
from federation.scheduling.podgroups import charged_to, membership_of

_SOURCE_TYPE = {"version": "v1", "kind": "Pod", "pluralName": "pods", "scope": "Namespaced"}
PODS = from_config({"metadata": {"name": "pods"}, "spec": {"sourceType": _SOURCE_TYPE}})
TRAIN = GroupRef("", "train")
NAME, COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"


def a_template(name: str = "a", size: str = "3", cpu: str = "1", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {NAME: "train"}, "annotations": {COUNT: size}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


def a_pod(name: str, record: PodGroup | None = None, cluster: str = "", **more: Any) -> Object:
    annotations = {**(more.pop("annotations", None) or {}), **({} if record is None else POD_GROUP.entry(record))}
    placement = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": cluster}]}] if cluster else []
    metadata = {"name": f"{name}-pods", "namespace": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {**metadata, "annotations": annotations, **more.pop("metadata", {})},
        "spec": {"template": a_template(name, **more), "placements": placement},
    }


def finished(pod: Object) -> Object:
    clusters = [each["cluster"] for each in pod["spec"]["placements"][0]["placement"]]
    evidence = {"run": run_of(pod), "succeeded": True, "time": "2026-01-01T00:00:00Z"}
    return {**pod, "status": {"clusters": [{"cluster": name, "finished": evidence} for name in clusters]}}


def records(pods: Sequence[Object], group: Object | None = None, ref: GroupRef = TRAIN) -> dict[str, PodGroup]:
    """Return the records after the changes, by pod."""
    found = {}
    for pod, annotations in plan_records(ref, pods, group):
        pod["metadata"]["annotations"] |= annotations
    for pod in pods:
        if (record := POD_GROUP.of(pod)) is not None:
            found[pod["spec"]["template"]["metadata"]["name"]] = record
    assert list(plan_records(ref, pods, group)) == [], "written once"
    return found


def test_the_first_pod_says_how_many_are_missing_and_nothing_else_is_written() -> None:
    found = records([a_pod("b"), a_pod("a")])

    assert found == {"a": PodGroup("train", waits="its pod group train is not complete: 2 of 3 pods exist")}


def test_the_first_pod_leads_a_complete_group_and_equal_pods_are_counted_together() -> None:
    found = records([a_pod("a"), a_pod("b"), a_pod("c", cpu="2")])

    assert set(found) == {"a"}, "the others wait without a write"
    assert found["a"].leads
    assert [each.count for each in found["a"].pods] == [2, 1]


def test_the_others_go_where_the_leader_is_and_leave_when_it_does() -> None:
    pods = [a_pod("a"), a_pod("b"), a_pod("c")]
    records(pods)
    pods[0]["spec"]["placements"] = a_pod("a", cluster="one")["spec"]["placements"]
    found = records(pods)

    assert found["b"] == found["c"] == PodGroup("train", leader="a", clusters=("one",))

    pods[0]["spec"]["placements"] = []
    assert records(pods)["b"] == PodGroup("train", leader="a")


def test_a_pod_that_runs_takes_over_with_the_place_in_the_queue_when_the_leader_has_ended() -> None:
    leads = PodGroup("train", pods=())
    queued = {ADMISSION.name: '{"phase":"Admitted"}', QUEUE_NODES.name: "[]"}
    first = finished(a_pod("a", leads, "one", annotations=queued))
    pods = [first, a_pod("b", cluster="one"), a_pod("c")]

    changes = {pod["metadata"]["name"]: annotations for pod, annotations in plan_records(TRAIN, pods, None)}

    assert {key: changes["b-pods"][key] for key in queued} == queued
    assert POD_GROUP.read(changes["b-pods"][POD_GROUP.name]) is not None
    assert POD_GROUP.read(changes["c-pods"][POD_GROUP.name]) == PodGroup("train", leader="b", clusters=("one",))
    assert changes["c-pods"][QUEUE_NODES.name] == "[]"
    assert "a-pods" not in changes


def test_a_group_that_runs_is_not_incomplete_because_pods_of_it_have_ended() -> None:
    found = records([finished(a_pod("a", cluster="one")), a_pod("b", PodGroup("train", pods=()), "one")])

    assert found["b"].leads


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        (("", "3"), f"pod a has no number of pods; set {COUNT} in its annotations"),
        (("0", "3"), f"pod a has no number of pods; set {COUNT} in its annotations"),
        (("9" * 99, "3"), f"pod a has no number of pods; set {COUNT} in its annotations"),
        (("2", "3"), "its pods name different numbers of pods: 2, 3"),
    ],
)
def test_an_unclear_number_of_pods_holds_the_group(sizes: tuple[str, str], problem: str) -> None:
    found = records([a_pod(name, size=size) for name, size in zip("ab", sizes, strict=True)])

    assert found == {"a": PodGroup("train", waits=problem)}


def test_too_many_different_pods_hold_those_that_do_not_run() -> None:
    runs = a_pod("a", PodGroup("train", pods=()), "one")
    newcomers = [a_pod(f"b{number}", cpu=f"{number}m") for number in range(1, 300)]

    found = records([runs, *newcomers])

    assert found["a"].leads
    assert [each.count for each in found["a"].pods] == [1]
    assert {each.waits[:47] for name, each in found.items() if name != "a"} == {
        "its pods have more than 256 different specs, or"
    }


def charged(pods: Sequence[Object]) -> int:
    """Return the CPUs that quotas count, in milliunits."""
    return sum(found[0]["cpu"] for pod in pods if (found := charged_to(pod, PODS)) is not None)


def test_a_label_does_not_hide_pods_that_run_from_quotas() -> None:
    ordinary = [a_pod(f"b{number}", cpu=f"{number}m", cluster="one") for number in range(1, 300)]

    assert charged(ordinary) == sum(range(1, 300)), "they have the label and no record yet"
    records(ordinary)
    assert charged(ordinary) == sum(range(1, 300)), "their specs are too many for a group"
    assert all(membership_of(pod) is None for pod in ordinary), "and they stay where they are"


def test_the_end_of_a_leader_does_not_hide_a_group_that_cannot_be_counted() -> None:
    pods = [a_pod(f"b{number}", cpu=f"{number}m", size="200", cluster="one") for number in range(1, 257)]
    records(pods)
    assert charged(pods) == sum(range(1, 257))
    late = [a_pod("late", cpu="257m", size="200")]
    records([*pods, *late])
    assert charged(pods) == sum(range(1, 257)), "the group goes on without the pod"

    leader = next(pod for pod in pods if membership_of(pod).leads)
    running = [pod for pod in pods if pod is not leader]
    more = [a_pod(f"more{number}", cpu=f"{number}m", size="200") for number in range(300, 310)]
    records([*running, *late, *more])

    of_leader = int(leader["metadata"]["name"].removesuffix("-pods")[1:])
    assert charged(running) == sum(range(1, 257)) - of_leader


def test_a_pod_of_another_group_whose_leader_does_not_count_it_is_charged_itself() -> None:
    led = PodGroup("train", leader="elsewhere", clusters=("one",))
    pods = [a_pod(f"b{number}", led, "one", cpu=f"{number}m") for number in range(1, 300)]

    records(pods)

    assert charged(pods) == sum(range(1, 300))


@pytest.mark.parametrize(
    ("metadata", "spec", "ref"),
    [
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}, GroupRef("scheduling.x-k8s.io", "g")),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, {}, GroupRef("scheduling.volcano.sh", "g")),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, GroupRef("scheduling.k8s.io", "g")),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g"}}, {}, GroupRef("", "g")),
        ({"labels": {"app": "web"}}, {}, None),
    ],
)
def test_pods_name_their_group_in_the_form_of_each_project(
    metadata: Object, spec: Object, ref: GroupRef | None
) -> None:
    assert group_of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}) == ref


def test_a_pod_group_says_how_many_pods_start_together() -> None:
    ref = GroupRef("scheduling.k8s.io", "g")

    assert size_of(ref, (), {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}) == 4
    assert size_of(ref, (), {"spec": {"schedulingPolicy": {"basic": {}}}}) == 1
    assert "select it with a policy" in str(size_of(ref, (), None))
