"""Queues over the whole fleet: what waits holds nothing, and starts in order (docs/reference/queues.md)."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
import pytest
import yaml
from tests.scenarios.test_followers import ADMISSION_BINDINGS, ADMISSION_POLICIES
from tests.scenarios.test_gangs import NODES, SIZES, a_job, job_policy, nodes, pods, waits
from tests.scenarios.test_plan_and_reality import documents, plan
from tests.support.metrics import sample_of
from tests.support.vectors import ROOT
from tests.support.world import World, a_world
from tests.support.worldmember import find

from federation.api import names
from federation.api.resources import (
    CAPACITY_FLAVORS,
    CLUSTER_JOB_QUEUES,
    CORE_GROUP,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    JOB_QUEUES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import JOBS, NAMESPACES, PRIORITY_CLASSES, Object, Resource
from federation.apimachinery.webhookclient import WebhookResponse
from federation.scheduling.jobqueues import ADMISSION, Phase
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR
from federation.simulator.options import NodeShape

API = f"{CORE_GROUP}/v1alpha1"


def a_flavor(name: str = "any", **spec: Any) -> Object:
    return {"apiVersion": API, "kind": "CapacityFlavor", "metadata": {"name": name}, "spec": spec}


def a_cluster_queue(name: str = "ml", cores: str = "100", flavor: str = "any", **spec: Any) -> Object:
    quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cores}]}
    body = {"flavors": [quota], "namespaceSelector": {}, **spec}
    return {"apiVersion": API, "kind": "ClusterJobQueue", "metadata": {"name": name}, "spec": body}


def a_queue(name: str = "team", target: str = "ml") -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "JobQueue", "metadata": metadata, "spec": {"clusterJobQueue": target}}


def a_queued_job(
    name: str, pods_: int, cpu: str = "2", queue: str = "team", mode: str = "Indexed", **labels: str
) -> Object:
    job = a_job(name, pods=pods_, cpu=cpu, mode=mode)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue, **labels}
    return job


async def with_queues(world: World, failover: Object | None = None, **queue: Any) -> None:
    await world.create(PROPAGATION_POLICIES, job_policy(**({"failover": failover} if failover else {})))
    await world.create(CAPACITY_FLAVORS, a_flavor())
    await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(**queue))
    await world.create(JOB_QUEUES, a_queue())


def with_priority(job: Object, name: str) -> Object:
    job["spec"]["template"]["spec"]["priorityClassName"] = name
    return job


async def with_priority_classes(world: World, *members: str) -> None:
    """Create the PriorityClasses on the host and in members."""
    for name, value in (("high", 100), ("low", 1)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await world.create(PRIORITY_CLASSES, {**body, "value": value})
        for member in members:
            await world.members[member].admin.create(PRIORITY_CLASSES, {**body, "value": value})


async def placed(world: World, name: str) -> list[str]:
    federated = await world.find(FEDERATED_OBJECTS, f"{name}-jobs.batch")
    entries = ((federated or {}).get("spec") or {}).get("placements") or ()
    return sorted(item["cluster"] for entry in entries for item in entry["placement"])


async def is_suspended(world: World, name: str) -> bool:
    return conditions.is_true(
        (await world.user.get(JOBS, name, namespace="default"))["status"]["conditions"], "Suspended"
    )


async def waiting(world: World) -> list[Object]:
    queue = await world.find(JOB_QUEUES, "team")
    found: list[Object] = ((queue or {}).get("status") or {}).get("waiting") or []
    return found


async def names_waiting(world: World) -> list[str]:
    return [each["name"] for each in await waiting(world)]


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_job_above_the_quota_waits_with_nothing_in_members_and_starts_when_another_has_ended() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="60")
        await world.create(JOBS, a_queued_job("first", 24))
        await world.until(lambda: placed(world, "first"))
        await world.create(JOBS, a_queued_job("second", 24))

        await world.until_equal(lambda: names_waiting(world), ["second"])
        await world.settle()

        [line] = await waiting(world)
        assert line["position"] == 1
        assert line["waitsFor"] == "needs 48 cores, ClusterJobQueue ml has 12 of flavor any free"
        assert await waits(world, "second") == "waits in JobQueue team"
        assert await placed(world, "second") == []
        assert sum((await pods(world)).values()) == 24

        await world.user.delete(JOBS, "first", namespace="default")

        await world.until(lambda: placed(world, "second"))
        federated = await world.find(FEDERATED_OBJECTS, "second-jobs.batch")
        admission = ADMISSION.of(federated or {})
        assert admission is not None
        assert (admission.phase, admission.holds) == (Phase.ADMITTED, {"any": {"cpu": 48_000}})


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
async def test_a_job_that_loses_its_cluster_is_first_in_its_queue_and_starts_elsewhere(mode: str) -> None:
    async with a_world(
        members=("one", "two"), nodes={"one": NODES["medium"], "two": NODES["medium"]}, toleration_s=5
    ) as world:
        await with_queues(world, cores="48", failover={"graceSeconds": 0})
        await world.create(JOBS, a_queued_job("first", 20, mode=mode))
        await world.until(lambda: placed(world, "first"))
        await world.create(JOBS, a_queued_job("second", 20))
        await world.until_equal(lambda: names_waiting(world), ["second"])
        [lost] = await placed(world, "first")

        await world.lose(lost)

        [other] = {"one", "two"} - {lost}
        await world.until_equal(lambda: placed(world, "first"), [other])
        federated = await world.find(FEDERATED_OBJECTS, "first-jobs.batch")
        admission = ADMISSION.of(federated or {})
        assert admission is not None
        assert (admission.phase, admission.losses) == (Phase.ADMITTED, 1)
        await world.until_equal(lambda: names_waiting(world), ["second"])
        await world.bring_back(lost)


async def test_a_job_of_lower_priority_gives_way_within_the_budget_and_waits_again() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_priority_classes(world, "one")
        preemption = {"withinQueue": "LowerPriority", "evictionsPerHour": 1}
        await with_queues(world, cores="48", priorityClassNames=["high", "low"], preemption=preemption)
        await world.create(JOBS, with_priority(a_queued_job("small", 12), "low"))
        await world.create(JOBS, with_priority(a_queued_job("smaller", 12), "low"))
        await world.until(lambda: placed(world, "small"))
        await world.until(lambda: placed(world, "smaller"))

        await world.create(JOBS, with_priority(a_queued_job("urgent", 12), "high"))

        await world.until(lambda: placed(world, "urgent"))
        await world.until(lambda: names_waiting(world))
        await world.create(JOBS, with_priority(a_queued_job("urgent-2", 12), "high"))
        await world.settle()
        assert await placed(world, "urgent-2") == [], "the budget of the hour is used"
        running = [name for name in ("small", "smaller") if await placed(world, name)]
        [waits_again] = {"small", "smaller"} - {*running}
        await world.until(lambda: is_suspended(world, waits_again))
        status = (await world.user.get(JOBS, waits_again, namespace="default"))["status"]
        assert "active" not in status, "no pod of it is anywhere"
        assert len(running) == 1
        assert {job["metadata"]["name"] for job in (await world.members["one"].admin.list(JOBS)).items} == {
            "urgent",
            *running,
        }


async def test_nothing_gives_way_to_a_job_whose_priority_class_no_member_has() -> None:
    async with a_world(members=("one", "two"), nodes={"one": NODES["medium"], "two": NODES["medium"]}) as world:
        await with_priority_classes(world)
        low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
        await world.members["one"].admin.create(PRIORITY_CLASSES, low)
        preemption = {"withinQueue": "LowerPriority"}
        await with_queues(world, cores="48", priorityClassNames=["high", "low"], preemption=preemption)
        await world.create(JOBS, with_priority(a_queued_job("small", 24), "low"))
        await world.until_equal(lambda: placed(world, "small"), ["one"])

        await world.create(JOBS, with_priority(a_queued_job("urgent", 24), "high"))
        await world.until_equal(lambda: names_waiting(world), ["urgent"])
        await world.settle()

        assert (await waiting(world))[0]["waitsFor"] == "its pods name PriorityClass high, which no cluster has"
        assert await placed(world, "small") == ["one"]
        await world.members["two"].admin.create(PRIORITY_CLASSES, {**low, "metadata": {"name": "high"}})
        await world.until_equal(lambda: placed(world, "urgent"), ["two"])


async def test_a_job_whose_pods_its_cluster_refuses_gives_the_cluster_back_and_nothing_gives_way_to_it_again() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_priority_classes(world, "one")
        preemption = {"withinQueue": "LowerPriority"}
        await with_queues(world, cores="48", priorityClassNames=["high", "low"], preemption=preemption)
        await world.create(JOBS, with_priority(a_queued_job("small", 24), "low"))
        await world.until_equal(lambda: placed(world, "small"), ["one"])
        urgent = with_priority(a_queued_job("urgent", 24), "high")
        urgent["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"

        await world.create(JOBS, urgent)
        await world.until_equal(lambda: placed(world, "urgent"), ["one"])
        await world.until_equal(lambda: names_waiting(world), ["urgent"])

        await world.until_equal(lambda: placed(world, "small"), ["one"])
        assert "cluster one creates none of its pods" in await waits(world, "urgent")
        await world.pass_time(1_800)
        assert await placed(world, "small") == ["one"]


async def test_a_restart_keeps_admission_and_order_and_an_ended_job_gives_its_quota_back() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="48")
        first = a_queued_job("first", 24)
        first["spec"]["template"]["metadata"]["annotations"][SIMULATOR_RUN_FOR] = "30s"
        await world.create(JOBS, first)
        await world.until(lambda: placed(world, "first"))
        for name in ("second", "third"):
            await world.create(JOBS, a_queued_job(name, 24))
            await world.pass_time(1.5)
        await world.until_equal(lambda: names_waiting(world), ["second", "third"])

        await world.restart()
        await world.settle()

        assert await names_waiting(world) == ["second", "third"]
        assert await placed(world, "second") == []
        await world.until(lambda: placed(world, "second"))
        await world.until_equal(lambda: names_waiting(world), ["third"])


async def test_a_label_without_a_queue_in_the_namespace_changes_nothing() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())

        await world.create(JOBS, a_queued_job("plain", 12))

        await world.until(lambda: placed(world, "plain"))
        federated = await world.find(FEDERATED_OBJECTS, "plain-jobs.batch")
        assert ADMISSION.of(federated or {}) is None


async def test_a_queue_that_does_not_admit_the_namespace_or_the_priority_lets_jobs_wait_and_says_why() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="48", namespaceSelector={"matchLabels": {"team": "other"}})
        await world.create(JOBS, a_queued_job("job", 2))

        async def told() -> str:
            queue = await world.find(JOB_QUEUES, "team")
            return str(((queue or {}).get("status") or {}).get("message"))

        await world.until_equal(told, "ClusterJobQueue ml does not exist or does not admit namespace default")
        assert await placed(world, "job") == []

        await world.merge(
            CLUSTER_JOB_QUEUES, "ml", {"spec": {"namespaceSelector": {"matchLabels": None}}}, namespace=""
        )

        await world.until(lambda: placed(world, "job"))
        await world.create(JOBS, with_priority(a_queued_job("eager", 2), "system-cluster-critical"))
        await world.until_equal(lambda: names_waiting(world), ["eager"])
        line = await waiting(world)
        assert "its pods name PriorityClass system-cluster-critical, which ClusterJobQueue ml does not allow" in str(
            line
        )
        assert await placed(world, "eager") == []


# -- the manifests of docs/reference/queues.md

KINDS: dict[str, Resource] = {each.kind: each for each in (CAPACITY_FLAVORS, CLUSTER_JOB_QUEUES, JOB_QUEUES)}
GPU = "nvidia.com/gpu"


def manifests() -> list[Object]:
    page = (ROOT / "docs" / "reference" / "queues.md").read_text()
    texts = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [found for text in texts for found in yaml.safe_load_all(text) if "kind" in found]


async def holds(world: World, name: str) -> dict[str, dict[str, int]]:
    admission = ADMISSION.of(await world.find(FEDERATED_OBJECTS, f"{name}-jobs.batch") or {})
    return {} if admission is None else admission.holds


def on_gpus(job: Object) -> Object:
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"gpu": "a100"}
    pod["containers"][0]["resources"]["limits"] = {GPU: "1"}
    return job


@pytest.mark.slow("a world of its own")
async def test_jobs_use_the_flavors_that_the_page_describes() -> None:
    a100 = [
        NodeShape(f"gpu-{n}", cpu="32", memory="128Gi", extended={GPU: "8"}, labels={"gpu": "a100"}) for n in (1, 2)
    ]
    members = {"batch": {"tier": "batch"}, "web": {"tier": "web"}}
    async with a_world(members=tuple(members), labels=members, nodes={"batch": a100, "web": nodes(48)}) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        for manifest in manifests():
            await world.create(KINDS[manifest["kind"]], manifest)
        await world.create(JOBS, a_queued_job("plain", 10, cpu="2"))
        await world.create(JOBS, on_gpus(a_queued_job("gpus", 12, cpu="2")))
        await world.settle()
        assert (await placed(world, "plain"), await placed(world, "gpus")) == ([], []), "the namespace has no label"

        await world.merge(NAMESPACES, "default", {"metadata": {"labels": {"team": "research"}}}, namespace="")

        await world.until_equal(lambda: placed(world, "gpus"), ["batch"])
        await world.until_equal(lambda: holds(world, "gpus"), {"a100": {"cpu": 24_000, GPU: 12}})
        await world.until_equal(lambda: holds(world, "plain"), {"any": {"cpu": 20_000}})


async def test_pods_of_a_flavor_get_its_node_labels_and_tolerations_and_the_gang_is_counted_on_these_nodes() -> None:
    labels, taint = {"pool": "gpu"}, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    gpu = [NodeShape(f"gpu-{n}", cpu="12", labels=labels, taints=(taint,)) for n in range(2)]
    shapes = {"one": [*NODES["large"]], "two": [*nodes(24), *gpu]}
    async with a_world(members=("one", "two"), nodes=shapes) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        tolerations = [{"key": "gpu", "operator": "Exists"}]
        await world.create(
            CAPACITY_FLAVORS, a_flavor("gpu", nodeLabels=labels, assignNodes=True, tolerations=tolerations)
        )
        await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(flavor="gpu"))
        await world.create(JOB_QUEUES, a_queue())

        await world.create(JOBS, a_queued_job("large", 13))
        await world.create(JOBS, a_queued_job("fits", 12))

        await world.until_equal(lambda: placed(world, "fits"), ["two"])
        await world.settle()
        job = await world.members["two"].find(JOBS, "fits")
        assert job is not None
        assert job["spec"]["template"]["spec"]["nodeSelector"] == labels
        assert job["spec"]["template"]["spec"]["tolerations"] == tolerations
        assert await pods(world) == {"two": 12}
        assert await placed(world, "large") == [], "12 of its pods fit on the nodes with the label"
        source = await world.find(JOBS, "fits")
        assert source is not None
        assert "nodeSelector" not in source["spec"]["template"]["spec"]


class Budget:
    """A service of the administrators that says which jobs may start; its answers can be changed."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Object]] = {}
        self.asked: list[str] = []

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        assert connection.server == "https://budget.example"
        name = orjson.loads(body)["job"]["name"]
        self.asked.append(name)
        status, answer = self.answers.get(name, (200, {"status": "Ready"}))
        return WebhookResponse(status, orjson.dumps(answer))

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        raise AssertionError


async def test_a_job_starts_when_the_admission_checks_of_its_queue_say_ready_and_others_pass_it_until_then() -> None:
    budget = Budget()
    budget.answers["first"] = (503, {})
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}, gates=budget) as world:
        await with_queues(world, admissionChecks=[{"name": "budget", "url": "https://budget.example"}])
        await world.create(JOBS, a_queued_job("first", 4))
        await world.until_equal(lambda: waits_for(world, "first"), "admission check budget: it did not answer")
        await world.create(JOBS, a_queued_job("second", 4))
        await world.until_equal(lambda: placed(world, "second"), ["one"])
        assert await placed(world, "first") == []

        budget.answers["first"] = (200, {"status": "Retry", "message": "next month", "retryAfterSeconds": 10})
        await world.until_equal(lambda: waits_for(world, "first"), "admission check budget holds it: next month")
        assert await pods(world) == {"one": 4}
        del budget.answers["first"]
        await world.until_equal(lambda: placed(world, "first"), ["one"])
        assert budget.asked.count("second") == 1


async def waits_for(world: World, name: str) -> str:
    return next((str(each["waitsFor"]) for each in await waiting(world) if each["name"] == name), "")


async def test_gauges_of_a_queue_go_with_it() -> None:
    async def seen() -> tuple[float | None, float | None]:
        labels = {"queue": "ml", "flavor": "any", "resource": "cpu"}
        used = sample_of("federation_queue_used_ratio", labels)
        return used, sample_of("federation_queue_pending_jobs", {"queue": "ml"})

    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="16")
        await world.create(JOBS, a_queued_job("first", 6))
        await world.until_equal(seen, (0.75, 0.0))
        await world.create(JOBS, a_queued_job("second", 6))
        await world.until_equal(seen, (0.75, 1.0))

        await world.user.delete(CLUSTER_JOB_QUEUES, "ml", namespace="")

        await world.until_equal(seen, (None, None))


async def test_small_jobs_of_a_queue_share_a_cluster_so_that_another_stays_free_for_a_large_one() -> None:
    async with a_world(members=("one", "two"), nodes={"one": NODES["medium"], "two": NODES["medium"]}) as world:
        await with_queues(world)
        await world.create(JOBS, a_queued_job("first", 2))
        where = await world.until(lambda: placed(world, "first"))
        await world.settle()
        await world.create(JOBS, a_queued_job("second", 2))

        await world.until_equal(lambda: placed(world, "second"), where)


async def test_a_job_with_a_deadline_waits_for_the_cheaper_cluster_while_there_is_time() -> None:
    async with a_world(members=("east", "west"), nodes={"east": NODES["medium"], "west": NODES["medium"]}) as world:
        for name, price in (("east", "0.04"), ("west", "0.01")):
            labels = {f"{names.PRICE_PREFIX}cpu": price}
            await world.merge(FEDERATED_CLUSTERS, name, {"metadata": {"labels": labels}}, namespace="")
        await with_queues(world)

        def with_deadline(job: Object, minutes: int, run_time: str) -> Object:
            by = to_rfc3339(world.clock.now() + timedelta(minutes=minutes))
            job["metadata"]["annotations"] = {
                names.DEADLINE: orjson.dumps({"by": by, "runTime": run_time, "checkpointEvery": "1m"}).decode()
            }
            return job

        await world.create(JOBS, with_deadline(a_queued_job("first", 30), 180, "60m"))
        await world.until_equal(lambda: placed(world, "first"), ["west"])
        await world.settle()
        second = with_deadline(a_queued_job("second", 10), 180, "30m")
        planned, _ = await plan(world, documents=documents(second))
        [expected] = [each for each in planned.objects if each.name == "second"]
        await world.create(JOBS, second)

        await world.until_equal(lambda: names_waiting(world), ["second"])
        [line] = await waiting(world)
        assert line["waitsFor"] == "waits for cluster west, the cheapest in which it ends before its deadline"
        assert [(each["cluster"], each["cost"]) for each in line["alternatives"]] == [("west", 0.1), ("east", 0.4)]
        assert await placed(world, "second") == []
        assert [(each["cluster"], each["cost"]) for each in expected.alternatives] == [("west", 0.1), ("east", 0.4)]
        assert expected.alternatives[0]["startsAt"] == line["alternatives"][0]["startsAt"]

        sooner = with_deadline(a_queued_job("second", 10), 45, "30m")["metadata"]["annotations"]
        await world.merge(JOBS, "second", {"metadata": {"annotations": sooner}})

        await world.until_equal(lambda: placed(world, "second"), ["east"])
        admission = ADMISSION.of(await world.find(FEDERATED_OBJECTS, "second-jobs.batch") or {})
        assert admission is not None
        assert [(each.cluster, each.is_met) for each in admission.alternatives] == [("east", True), ("west", False)]

        third = a_queued_job("third", 1)
        third["metadata"]["annotations"] = {names.DEADLINE: "tomorrow"}
        await world.create(JOBS, third)
        await world.until_equal(lambda: names_waiting(world), ["third"])
        [line] = await waiting(world)
        assert line["waitsFor"].startswith(f"annotation {names.DEADLINE} is not such as ")


@pytest.mark.slow("a world of its own")
async def test_a_job_whose_admission_the_host_refuses_waits_and_the_others_start() -> None:
    match = {"resources": ["federatedobjects"], "operations": ["UPDATE"], "apiVersions": ["*"]}
    policy = {
        "apiVersion": ADMISSION_POLICIES.api_version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-admissions"},
        "spec": {
            "matchConstraints": {"resourceRules": [{**match, "apiGroups": [CORE_GROUP]}]},
            "validations": [
                {
                    "expression": f"object.metadata.name != 'refused-jobs.batch' || !('{ADMISSION.name}' in "
                    "object.metadata.?annotations.orValue({}))",
                    "message": "not this one",
                }
            ],
        },
    }
    binding = {
        "apiVersion": ADMISSION_POLICIES.api_version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-admissions"},
        "spec": {"policyName": "no-admissions", "validationActions": ["Deny"]},
    }
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(ADMISSION_POLICIES, policy)
        await world.create(ADMISSION_BINDINGS, binding)
        await with_queues(world)
        await world.create(JOBS, a_queued_job("refused", 1))
        await world.create(JOBS, a_queued_job("other", 1))

        await world.until(lambda: placed(world, "other"))
        await world.until_equal(lambda: names_waiting(world), ["refused"])
        await world.settle()

        [line] = await waiting(world)
        assert line["waitsFor"].startswith("its admission was not accepted")
        assert "not this one" in line["waitsFor"]


async def used(world: World) -> str:
    queue = await world.find(CLUSTER_JOB_QUEUES, "ml")
    [line] = ((queue or {}).get("status") or {}).get("usage") or [{}]
    return str(line.get("used"))


async def running(world: World, name: str) -> int:
    found = [await find(each.admin, JOBS, name, "default") for each in world.members.values()]
    return sum(((job or {}).get("status") or {}).get("active") or 0 for job in found)


async def test_a_suspended_job_is_started_by_its_queue_and_stopped_by_its_author() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="20")
        job = a_queued_job("old", 4)
        job["spec"]["suspend"] = True
        await world.create(JOBS, job)
        await world.until_equal(lambda: running(world, "old"), 4)
        await world.merge(JOBS, "old", {"spec": {"suspend": False}})
        await world.settle()
        await world.restart()
        await world.merge(JOBS, "old", {"spec": {"suspend": True}})
        await world.until_equal(lambda: placed(world, "old"), [])
        await world.until_equal(lambda: used(world), "0")
        assert await running(world, "old") == 0
        await world.merge(JOBS, "old", {"spec": {"suspend": False}})
        await world.until_equal(lambda: running(world, "old"), 4)


async def test_what_a_job_gives_up_returns_to_its_queue() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="20")
        job = a_queued_job("wide", 10, mode="NonIndexed")
        job["spec"]["completions"] = 100
        await world.create(JOBS, job)
        await world.until_equal(lambda: running(world, "wide"), 10)
        await world.create(JOBS, a_queued_job("next", 6))
        await world.until_equal(lambda: names_waiting(world), ["next"])
        await world.merge(JOBS, "wide", {"spec": {"parallelism": 3}})
        await world.until_equal(lambda: running(world, "next"), 6)
        await world.until_equal(lambda: used(world), "18")


async def test_pods_that_have_ended_return_to_the_queue_of_their_job() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="20")
        job = a_queued_job("short", 4, mode="NonIndexed")
        job["spec"]["completions"] = 6
        job["spec"]["template"]["metadata"]["annotations"][SIMULATOR_RUN_FOR] = "60s"
        await world.create(JOBS, job)
        await world.until_equal(lambda: used(world), "8")
        await world.until_equal(lambda: running(world, "short"), 2)
        await world.until_equal(lambda: used(world), "4")


async def test_a_job_queue_that_is_missing_for_a_moment_is_no_end_of_its_limit() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="20")
        await world.create(JOBS, a_queued_job("first", 10))
        await world.until_equal(lambda: running(world, "first"), 10)
        await world.create(JOBS, a_queued_job("second", 10))
        await world.until_equal(lambda: names_waiting(world), ["second"])
        await world.user.delete(JOB_QUEUES, "team", "default")
        await world.settle()
        await world.restart()
        await world.settle()
        assert (await placed(world, "second"), await running(world, "first")) == ([], 10)
        await world.create(JOB_QUEUES, a_queue())
        await world.until_equal(lambda: names_waiting(world), ["second"])
        assert await used(world) == "20"
