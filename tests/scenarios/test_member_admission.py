"""A simulated member refuses pods of its own controllers as a real one does, and its workloads say so."""

from typing import Any

import pytest
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.api.names import DEPLOYMENT_REPLICA_FAILURE
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    Object,
    Resource,
)


async def refusals(member: Member, kind: str) -> list[str]:
    return [
        event["message"]
        for event in await member.all(EVENTS)
        if (event["reason"], event["involvedObject"]["kind"]) == ("FailedCreate", kind)
    ]


async def failure_of(member: Member, name: str = "web") -> Object | None:
    deployment = await member.get(DEPLOYMENTS, name)
    return find((deployment.get("status") or {}).get("conditions"), DEPLOYMENT_REPLICA_FAILURE)


async def ready(member: Member) -> int:
    return len(await member.ready_pods())


async def test_a_class_that_does_not_exist_keeps_pods_away_until_it_does() -> None:
    async with a_member() as member:
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, template=a_template(priorityClassName="high")))
        found = await member.until(lambda: failure_of(member))
        assert "no PriorityClass with name high was found" in found["message"]
        assert await refusals(member, "ReplicaSet")
        await member.create(PRIORITY_CLASSES, {**an_object(PRIORITY_CLASSES, "high"), "value": 7})
        await member.until_equal(lambda: ready(member), 1)
        assert await failure_of(member) is None
        (pod,) = await member.all(PODS)
        assert pod["spec"]["priority"] == 7


async def test_a_quota_counts_the_pods_of_workloads() -> None:
    async with a_member() as member:
        await member.create(RESOURCE_QUOTAS, an_object(RESOURCE_QUOTAS, "few", spec={"hard": {"pods": "2"}}))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: ready(member), 2)
        found = await member.until(lambda: failure_of(member))
        assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in found["message"]


async def test_a_limit_range_completes_the_pods_of_workloads() -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "150m"}, "default": {"cpu": "300m"}}]
    async with a_member() as member:
        await member.create(LIMIT_RANGES, an_object(LIMIT_RANGES, "sizes", spec={"limits": limits}))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS))
        await member.until_equal(lambda: ready(member), 1)
        (pod,) = await member.all(PODS)
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "300m"}


@pytest.mark.parametrize("kind", [STATEFUL_SETS, DAEMON_SETS, JOBS], ids=lambda kind: kind.kind)
async def test_pod_security_keeps_pods_of_every_kind_of_workload_away(kind: Resource) -> None:
    async with a_member() as member:
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        await member.merge(NAMESPACES, "default", {"metadata": {"labels": labels}})
        template = a_template(hostNetwork=True, **({"restartPolicy": "Never"} if kind is JOBS else {}))
        spec: dict[str, Any] = {"template": template}
        workload = an_object(JOBS, "web", spec=spec) if kind is JOBS else a_workload(kind, template=template)
        await member.create(kind, workload)
        (text, *_) = await member.until(lambda: refusals(member, kind.kind))
        assert text.startswith("Error creating: pods ")
        assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in text
        assert await member.names(PODS) == []
