"""CronJobs in a simulated member. The virtual clock starts on 2026-01-01 at midnight UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.simulatedmember import Member, a_member, an_object

from federation.apimachinery.resources import CRON_JOBS, JOBS, PODS, Object
from federation.simulator.controllers.cronjobs import Schedule
from federation.simulator.controllers.names import SIMULATOR_EXIT_CODE, SIMULATOR_RUN_FOR

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_cron_job(schedule: str, run_for: str = "5s", exit_code: str = "0", **spec: Any) -> Object:
    notes = {SIMULATOR_RUN_FOR: run_for, SIMULATOR_EXIT_CODE: exit_code}
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"annotations": notes}, "spec": pod_spec}
    job = {"metadata": {"labels": {"app": "tick"}}, "spec": {"backoffLimit": 0, "template": template}}
    return an_object(CRON_JOBS, "tick", spec={"schedule": schedule, "jobTemplate": job, **spec})


async def phases(member: Member) -> list[str]:
    return sorted(pod["status"].get("phase", "") for pod in await member.all(PODS))


async def test_jobs_start_on_time_and_history_is_limited() -> None:
    async with a_member() as member:
        await member.create(CRON_JOBS, a_cron_job("*/5 * * * *", successfulJobsHistoryLimit=2))
        await member.pass_time(60, step_s=1)
        assert await member.names(JOBS) == []
        await member.pass_time(242, step_s=1)
        (job,) = await member.all(JOBS)
        status = await member.status(CRON_JOBS, "tick")
        assert status["lastScheduleTime"] == "2026-01-01T00:05:00Z"
        assert [each["name"] for each in status["active"]] == [job["metadata"]["name"]]
        assert job["metadata"]["labels"] == {"app": "tick"}
        key = "batch.kubernetes.io/cronjob-scheduled-timestamp"
        assert job["metadata"]["annotations"][key] == "2026-01-01T00:05:00Z"

        await member.pass_time(1200, step_s=1)
        jobs = await member.all(JOBS)
        status = await member.status(CRON_JOBS, "tick")
        assert len(jobs) == 3  # two of them have ended
        assert status["lastScheduleTime"] == "2026-01-01T00:25:00Z"
        assert [each["name"] for each in status["active"]] == [jobs[-1]["metadata"]["name"]]
        assert status["lastSuccessfulTime"] > "2026-01-01T00:20:00Z"


@pytest.mark.parametrize(("policy", "jobs"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_concurrency_policies(policy: str, jobs: int) -> None:
    async with a_member() as member:
        await member.create(CRON_JOBS, a_cron_job("* * * * *", "1h", concurrencyPolicy=policy))
        await member.pass_time(185, step_s=1)
        running = await member.names(JOBS)
        assert len(running) == jobs
        status = await member.status(CRON_JOBS, "tick")
        assert [each["name"] for each in status["active"]] == running
        first = f"tick-{int(START.timestamp()) // 60 + 1}"
        assert (first in running) == (policy != "Replace")


async def test_a_suspended_cron_job_catches_up_with_the_newest_time_only() -> None:
    async with a_member() as member:
        await member.create(CRON_JOBS, a_cron_job("* * * * *", suspend=True))
        await member.pass_time(200, step_s=1)
        assert await member.names(JOBS) == []
        await member.merge(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        await member.until(lambda: member.names(JOBS))
        assert (await member.status(CRON_JOBS, "tick"))["lastScheduleTime"] == "2026-01-01T00:03:00Z"


async def test_a_missed_time_is_not_caught_up_after_its_deadline() -> None:
    async with a_member() as member:
        await member.create(CRON_JOBS, a_cron_job("*/3 * * * *", suspend=True, startingDeadlineSeconds=10))
        await member.pass_time(200, step_s=1)
        await member.merge(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        await member.pass_time(30, step_s=1)
        assert await member.names(JOBS) == []


async def test_failed_jobs_are_kept_apart_and_go_with_the_cron_job() -> None:
    async with a_member() as member:
        await member.create(CRON_JOBS, a_cron_job("* * * * *", exit_code="1"))
        await member.pass_time(250, step_s=1)
        assert len(await member.names(JOBS)) <= 2
        assert "lastSuccessfulTime" not in await member.status(CRON_JOBS, "tick")
        await member.delete(CRON_JOBS, "tick", propagation_policy="Background")
        await member.until_equal(lambda: member.names(JOBS), [])
        await member.until_equal(lambda: member.names(PODS), [])


def test_schedules_follow_their_time_zone() -> None:
    noon = Schedule("0 12 * * ?", "Asia/Shanghai", START)
    assert noon.next_after(START) == datetime(2026, 1, 1, 4, tzinfo=UTC)
    hourly = Schedule("@hourly", "", START)
    assert hourly.next_after(START) == START + timedelta(hours=1)
    assert hourly.newest_between(START, START + timedelta(hours=3)) == START + timedelta(hours=3)
    assert hourly.newest_between(START, START + timedelta(minutes=59)) is None
    every = Schedule("@every 90s", "", START)
    assert every.next_after(START + timedelta(seconds=100)) == START + timedelta(seconds=180)
    assert every.newest_between(START, START + timedelta(seconds=200)) == START + timedelta(seconds=180)
