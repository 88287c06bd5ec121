"""Jobs in a simulated member."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.simulatedmember import Member, a_member, an_object

from federation.apimachinery.conditions import is_true
from federation.apimachinery.resources import JOBS, PODS, Object
from federation.simulator.controllers.indexes import format_indexes, parse_indexes
from federation.simulator.controllers.names import SIMULATOR_EXIT_CODE, SIMULATOR_FAILURES, SIMULATOR_RUN_FOR


def a_job(annotations: dict[str, str] | None = None, restart_policy: str = "Never", **spec: Any) -> Object:
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": restart_policy, "containers": [{"name": "main", "image": "busybox"}]},
    }
    return an_object(JOBS, "import", spec={"template": template, **spec})


async def until_ended(member: Member, type_: str, patience_s: float = 60.0) -> Object:
    async def look() -> Object | None:
        status = await member.status(JOBS, "import")
        return status if is_true(status.get("conditions"), type_) else None

    return await member.until(look, patience_s) or {}


def conditions_of(status: Object) -> list[tuple[str, str]]:
    return [(each["type"], each["reason"]) for each in status["conditions"]]


async def test_a_job_completes_and_counts_every_pod_once() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job(completions=5, parallelism=2))
        active = 0

        async def watch() -> bool:
            nonlocal active
            status = await member.status(JOBS, "import")
            active = max(active, status.get("active", 0))
            return is_true(status.get("conditions"), "Complete")

        await member.until(watch)
        status = await member.status(JOBS, "import")
        assert active == 2
        assert conditions_of(status) == [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached"),
        ]
        times = {key: status.pop(key) for key in ("startTime", "completionTime")}
        assert times["startTime"] < times["completionTime"]
        del status["conditions"]
        assert status == {"succeeded": 5, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
        pods = await member.all(PODS)
        assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}
        assert not any(pod["metadata"].get("finalizers") for pod in pods)


async def test_a_job_fails_at_its_backoff_limit_and_waits_longer_after_each_failure() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_EXIT_CODE: "3"}, backoffLimit=2))
        began_s = member.clock.monotonic()
        status = await until_ended(member, "Failed")
        assert conditions_of(status) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
        assert (status["failed"], "completionTime" in status) == (3, False)
        assert member.clock.monotonic() - began_s > 10 + 20
        codes = [
            pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in await member.all(PODS)
        ]
        assert codes == [3, 3, 3]


async def test_a_job_survives_fewer_failures() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_FAILURES: "1", SIMULATOR_RUN_FOR: "500ms"}))
        status = await until_ended(member, "Complete")
        assert (status["failed"], status["succeeded"]) == (1, 1)


async def test_containers_restart_in_place() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_FAILURES: "2"}, "OnFailure"))
        status = await until_ended(member, "Complete")
        (pod,) = await member.all(PODS)
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 2
        assert "failed" not in status


async def test_an_indexed_job_runs_each_index() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job(completions=4, parallelism=3, completionMode="Indexed"))
        status = await until_ended(member, "Complete")
        assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
        found = {
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod["spec"]["hostname"]
            for pod in await member.all(PODS)
        }
        assert found == {str(index): f"import-{index}" for index in range(4)}


async def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_RUN_FOR: "20s"}, completions=2, parallelism=2))
        await member.until_equal(lambda: _count(member, "active"), 2)
        await member.merge(JOBS, "import", {"spec": {"suspend": True}})
        await member.until_equal(lambda: member.names(PODS), [])
        status = await member.status(JOBS, "import")
        assert is_true(status["conditions"], "Suspended")
        assert not {"active", "startTime", "failed"} & status.keys()
        await member.merge(JOBS, "import", {"spec": {"suspend": False}})
        status = await until_ended(member, "Complete")
        assert conditions_of(status)[0] == ("Suspended", "JobResumed")
        assert status["succeeded"] == 2


async def _count(member: Member, field: str) -> int:
    return int((await member.status(JOBS, "import")).get(field, 0))


async def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_RUN_FOR: "30s"}))
        await member.until_equal(lambda: _count(member, "ready"), 1)
        await member.delete(PODS, (await member.names(PODS))[0])
        status = await until_ended(member, "Complete")
        assert (status["failed"], status["succeeded"]) == (1, 1)


async def test_a_deadline_ends_the_job() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_RUN_FOR: "60s"}, activeDeadlineSeconds=5))
        status = await until_ended(member, "Failed")
        assert conditions_of(status)[-1] == ("Failed", "DeadlineExceeded")
        assert member.clock.monotonic() < 10
        await member.until_equal(lambda: member.names(PODS), [])


async def test_a_finished_job_goes_after_its_time_to_live() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job(ttlSecondsAfterFinished=30))
        await until_ended(member, "Complete")
        await member.pass_time(25)
        assert await member.exists(JOBS, "import")
        await member.until_equal(lambda: member.names(JOBS), [])
        await member.until_equal(lambda: member.names(PODS), [])


async def test_a_deleted_job_leaves_no_pod_behind() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_RUN_FOR: "1h"}, completions=3, parallelism=3))
        await member.until_equal(lambda: _count(member, "ready"), 3)
        await member.delete(JOBS, "import", propagation_policy="Background")
        await member.until_equal(lambda: member.names(PODS), [])


async def test_a_finished_job_is_idle() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job(completions=3, parallelism=3))
        await until_ended(member, "Complete")
        await member.pass_time(2)
        before = await member.revision()
        await member.pass_time(60)
        assert await member.revision() == before


async def test_a_malformed_annotation_is_reported_by_the_pod() -> None:
    async with a_member() as member:
        await member.create(JOBS, a_job({SIMULATOR_RUN_FOR: "soon"}))

        async def message() -> str:
            for pod in await member.all(PODS):
                for each in (pod.get("status") or {}).get("containerStatuses", ()):
                    return str(each["state"]["waiting"]["message"])
            return ""

        assert SIMULATOR_RUN_FOR in await member.until(message)


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((0, 1), "0,1"), ((0, 2, 3, 4), "0,2-4"), ((5, 1, 0, 7), "0,1,5,7")]
)
def test_indexes_print_as_kubernetes_prints_them(indexes: tuple[int, ...], text: str) -> None:
    assert format_indexes(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_their_text(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 61) == indexes
