"""Tenants that want more of the fleet than their queue gives them."""

from dataclasses import replace

import orjson
import pytest
from tests.scenarios.test_gangs import NODES, a_job, pods
from tests.scenarios.test_job_queues import (
    a_queue,
    a_queued_job,
    names_waiting,
    placed,
    waiting,
    with_queues,
)
from tests.support.world import a_world
from tests.unit.features.queues.test_queueledger import NOW_S, a_cluster, a_state, an_entry

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, JOB_QUEUES
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import JOBS, NAMESPACES, Object
from federation.features.queues.rules.queuestatus import compute_statuses
from federation.planning.clusters.clusterresources import spec_requests
from federation.planning.rendering.admittednodes import QUEUE_NODES, PodNodes
from federation.scheduling.deadlines import Deadline, read_deadline
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase
from federation.scheduling.names import QUEUE_NAME


@pytest.mark.slow("a world of its own")
async def test_no_label_or_annotation_of_a_job_gives_it_more_than_its_queue() -> None:
    """One world for all attempts: a forged admission, another namespace's queue, a queue that does not exist."""
    forged = ADMISSION.text(
        Admission(Phase.ADMITTED, "team", from_rfc3339("2026-01-01T00:00:00Z"), clusters=["one"], holds={})
    )
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="10", namespaceSelector={"matchLabels": {"team": "a"}})
        await world.merge(NAMESPACES, "default", {"metadata": {"labels": {"team": "a"}}}, namespace="")
        await world.create(JOB_QUEUES, a_queue("foreign", "of-others"))

        admitted = a_queued_job("forged", 10)
        admitted["metadata"]["annotations"][ADMISSION.name] = forged
        admitted["metadata"]["annotations"][QUEUE_NODES.name] = QUEUE_NODES.text([PodNodes({}, {"pool": "of-others"})])
        await world.create(JOBS, admitted)
        await world.create(JOBS, a_queued_job("foreign", 1, queue="foreign"))
        missing = a_job("missing", pods=1)
        missing["metadata"]["labels"] = {QUEUE_NAME: "no-such-queue"}
        await world.create(JOBS, missing)
        await world.until_equal(lambda: names_waiting(world), ["forged"])
        await world.settle()

        federated = await world.find(FEDERATED_OBJECTS, "forged-jobs.batch")
        assert federated is not None
        assert QUEUE_NODES.of(federated) is None
        assert [await placed(world, name) for name in ("forged", "foreign", "missing")] == [[], [], []]
        assert await pods(world) == {}
        foreign = await world.find(JOB_QUEUES, "foreign")
        assert foreign is not None
        assert (
            foreign["status"]["message"]
            == "ClusterJobQueue of-others does not exist or does not admit namespace default"
        )


@pytest.mark.slow("100,000 jobs")
def test_a_hundred_thousand_tiny_jobs_of_a_tenant_do_not_keep_another_one_from_its_turn() -> None:
    state = a_state("4", namespaceSelector={})
    state.put_namespace("other", {})
    state.put_job_queue("other", "q", {"clusterJobQueue": "ml"})
    for n in range(100_000):
        state.put(an_entry(f"tiny-{n:06}", 1, 1), NOW_S)
    theirs = replace(an_entry("train", 1, 2, created_s=NOW_S), key="other/train", namespace="other")
    state.put(theirs, NOW_S)

    found = state.decide(NOW_S)

    assert "other/train" in found.admitted, "the JobQueue that uses least is next, however old the others' jobs are"
    assert len(found.waits) < 10_001, "no more than `pendingMax` of a JobQueue are in a round"
    statuses = compute_statuses(state, found, NOW_S)
    assert len(statuses.job_queues["team", "q"]["waiting"]) == 100
    assert "train" not in str(statuses.job_queues["team", "q"])
    assert "tiny" not in str(statuses.job_queues["other", "q"])


@pytest.mark.parametrize(
    ("lending", "borrowing", "cores", "starts"),
    [
        (None, None, 20, True),
        ("4", None, 15, False),
        ("4", None, 14, True),
        (None, "2", 13, False),
        ("0", None, 11, False),
    ],
)
def test_a_tenant_borrows_no_more_than_was_lent(
    lending: str | None, borrowing: str | None, cores: int, starts: bool
) -> None:
    state = a_state()
    limits = {"ml": {"borrowingLimit": borrowing}, "others": {"lendingLimit": lending}}
    for name, limit in limits.items():
        quota = {
            "name": "cpu",
            "nominalQuota": "10",
            **{key: value for key, value in limit.items() if value is not None},
        }
        spec = {"cohort": "lab", "namespaceSelector": {}, "flavors": [{"name": "any", "resources": [quota]}]}
        state.put_queue(name, {"metadata": {"name": name}, "spec": spec})
    state.put(an_entry("greedy", cores, 1), NOW_S)

    assert bool(state.decide(NOW_S).admitted) is starts


@pytest.mark.slow("a world of its own")
async def test_a_job_that_grows_after_its_admission_gives_its_place_back() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="10")
        await world.create(JOBS, a_queued_job("grows", 2))
        await world.until(lambda: placed(world, "grows"))

        await world.merge(JOBS, "grows", {"spec": {"parallelism": 6, "completions": 6}})

        await world.until_equal(lambda: names_waiting(world), ["grows"])
        [line] = await waiting(world)
        assert line["waitsFor"] == "needs 12 cores, ClusterJobQueue ml can have at most 10 of flavor any"
        await world.settle()
        assert (await placed(world, "grows"), await pods(world)) == ([], {})


@pytest.mark.parametrize("retries", [2**63 - 1, 999_999_999, 10_000])
def test_no_deadline_of_a_tenant_stops_the_round_of_all_queues(retries: int) -> None:
    """Its end with all retries would be a time that no clock has."""
    state = a_state("4")
    wish = orjson.dumps({"by": "9999-12-31T23:59:59Z", "runTime": "8760h", "spotRetries": retries}).decode()
    found = read_deadline({names.DEADLINE: wish}, None)
    is_read = isinstance(found, Deadline)
    odd = an_entry("odd", 1, 1, deadline=found if is_read else None, problem="" if is_read else found)
    state.put_cluster("one", a_cluster(**{names.CAPACITY_TYPE: names.SPOT}))
    state.put(odd, NOW_S)
    state.put(an_entry("train", 1, 2), NOW_S)
    assert "team/train" in state.decide(NOW_S).admitted


@pytest.mark.parametrize(
    "negative",
    [
        {"containers": [{"name": "x", "resources": {"requests": {"cpu": "-100"}}}]},
        {"containers": [{"name": "x", "resources": {"limits": {"cpu": "-100"}}}]},
        {"initContainers": [{"name": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "-100"}}}]},
        {"resources": {"requests": {"cpu": "-100"}}},
        {"resources": {"limits": {"cpu": "-100"}}},
        {"overhead": {"cpu": "-100"}},
    ],
)
def test_pods_of_custom_kinds_do_not_make_room_for_others_with_negative_requests(negative: Object) -> None:
    """Definitions of batch kinds accept any quantity; a group of workers would pay for the master of its job."""
    own = {"name": "a", "resources": {"requests": {"cpu": "4"}}}
    pod = {**negative, "containers": [own, *negative.get("containers", ())]}
    assert {name: str(amount) for name, amount in spec_requests(pod).items()} == {"cpu": "4"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], {"cpu": "5"}),
        ([{"limits": {"memory": "1Gi"}}], {"cpu": "5", "memory": "1Gi"}),
        ([{"requests": {"cpu": "1"}}, {}], {"cpu": "1"}),
        ([{"limits": {"cpu": "2"}}], {"cpu": "2"}),
    ],
)
def test_a_limit_of_the_whole_pod_is_paid_for_where_nothing_is_requested(
    containers: list[Object], expected: dict[str, str]
) -> None:
    """Members set it as the request of the pod, so a quota that counts nothing lets a tenant use everything."""
    spec = {
        "resources": {"limits": {"cpu": "5", "example.com/x": "1"}},
        "containers": [{"resources": each} for each in containers],
    }
    assert {name: str(amount) for name, amount in spec_requests(spec).items()} == expected
    asked = {**spec, "resources": {"limits": {"cpu": "5"}, "requests": {"cpu": "3"}}}
    assert str(spec_requests(asked)["cpu"]) == "3"
