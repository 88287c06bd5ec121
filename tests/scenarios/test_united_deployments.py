"""UnitedDeployments in a simulated member: real workload controllers, nodes and a scheduler, on a virtual clock."""

from collections import Counter
from typing import Any

import pytest
from tests.support.simulatedmember import Member, a_member, an_object

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import ADVANCED_STATEFUL_SETS, KRUISE_GROUP, UNITED_DEPLOYMENTS
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import (
    CONTROLLER_REVISIONS,
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.features.uniteddeployment.names import (
    DELETE_PROTECTION_LABEL,
    EVENT_SPECIFY_REPLICAS,
    RESERVED_POD_LABEL,
    SUBSET_PROVISIONED,
)
from federation.features.uniteddeployment.rules.workloadkinds import CLONE_SETS
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD
from federation.simulator.options import NodeShape

V1ALPHA1 = Resource(KRUISE_GROUP, "v1alpha1", "UnitedDeployment", "uniteddeployments")
LABELS = {"app": "sample"}


def a_node(name: str, **labels: str) -> NodeShape:
    return NodeShape(name, labels=labels)


def a_subset(name: str, pool: str = "", **fields: Any) -> Object:
    """Return a subset in the nodes of a pool, which has the subset's name unless given."""
    expression = {"key": "pool", "operator": "In", "values": [pool or name]}
    return {"name": name, "nodeSelectorTerm": {"matchExpressions": [expression]}, **fields}


def a_template(image: str = "nginx:1.25", **requests: str) -> Object:
    container: Object = {"name": "main", "image": image}
    if requests:
        container["resources"] = {"requests": requests}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}


def a_united(
    *subsets: Object,
    replicas: int | None = None,
    kind: str = "deploymentTemplate",
    template: Object | None = None,
    strategy: Object | None = None,
    **spec: Any,
) -> Object:
    topology: Object = {"subsets": list(subsets)}
    if strategy is not None:
        topology["scheduleStrategy"] = strategy
    united = an_object(
        V1ALPHA1,
        "sample",
        spec={
            "selector": {"matchLabels": LABELS},
            "template": {kind: {"metadata": {"labels": LABELS}, "spec": {"template": template or a_template()}}},
            "topology": topology,
            **spec,
        },
    )
    if replicas is not None:
        united["spec"]["replicas"] = replicas
    return united


def _subset(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get(names.SUBSET_NAME_LABEL, ""))


async def workloads(member: Member, resource: Resource = DEPLOYMENTS) -> dict[str, int]:
    """Return the replicas of the workloads by subset."""
    return {_subset(each): each["spec"]["replicas"] for each in await member.all(resource)}


async def running(member: Member) -> Counter[str]:
    """Return the number of pods with a node by subset."""
    return Counter(_subset(pod) for pod in await member.all(PODS) if pod["spec"].get("nodeName"))


async def scale(member: Member, replicas: int) -> None:
    """Scale as an autoscaler does."""
    body = {"spec": {"replicas": replicas}}
    await member.client.patch(V1ALPHA1, "sample", body, namespace="default", subresource="scale")


async def edit(member: Member, **spec: Any) -> None:
    await member.merge(V1ALPHA1, "sample", {"spec": spec})


async def subset_status(member: Member, name: str) -> Object:
    statuses = (await member.status(UNITED_DEPLOYMENTS, "sample")).get("subsetStatuses") or ()
    return next((entry for entry in statuses if entry["name"] == name), {})


async def is_schedulable(member: Member, subset: str) -> bool:
    condition = find((await subset_status(member, subset)).get("conditions"), names.SUBSET_SCHEDULABLE)
    return condition is None or condition["status"] == "True"


ECS = [a_node("ecs-1", pool="ecs"), a_node("serverless-1", pool="acs-serverless")]


async def test_six_replicas_use_two_of_ecs_and_the_rest_of_serverless() -> None:
    async with a_member(ECS, united_deployments=True) as member:
        united = a_united(a_subset("ecs", maxReplicas=2), a_subset("acs-serverless"), replicas=6)
        await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: running(member), Counter({"ecs": 2, "acs-serverless": 4}))
        for deployment in await member.all(DEPLOYMENTS):
            assert deployment["metadata"]["name"].startswith(f"sample-{_subset(deployment)}-")
        nodes = {pod["spec"]["nodeName"] for pod in await member.all(PODS) if _subset(pod) == "ecs"}
        assert nodes == {"ecs-1"}

        await member.until(lambda: _is_ready(member, 6))
        await member.pass_time(2)
        revision = await member.revision()
        await member.pass_time(60, step_s=1)
        assert await member.revision() == revision  # nothing is written any more
        status = await member.status(V1ALPHA1, "sample")
        assert status["subsetReplicas"] == {"ecs": 2, "acs-serverless": 4}
        assert status["labelSelector"] == "app=sample"
        assert status["currentRevision"] == status["updatedRevision"] == status["updateStatus"]["updatedRevision"]

        await scale(member, 10)
        await member.until_equal(lambda: running(member), Counter({"ecs": 2, "acs-serverless": 8}))
        await scale(member, 1)
        await member.until_equal(lambda: running(member), Counter({"ecs": 1}))
        shown = await member.client.get(V1ALPHA1, "sample", "default")
        assert shown["spec"]["replicas"] == 1


async def _is_ready(member: Member, replicas: int) -> bool:
    status = await member.status(UNITED_DEPLOYMENTS, "sample")
    return bool(status.get("readyReplicas") == status.get("updatedReadyReplicas") == replicas)


async def test_half_and_two_quarters_run_with_resources_of_their_own() -> None:
    def limited(cpu: str, memory: str) -> Object:
        limits = {"cpu": cpu, "memory": memory}
        return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}

    async with a_member([a_node("any", pool="any")], united_deployments=True) as member:
        united = a_united(
            a_subset("intel", "any", replicas="50%", patch=limited("2", "4000Mi")),
            a_subset("amd64", "any", replicas="25%", patch=limited("3", "4000Mi")),
            a_subset("yitian-arm", "any", replicas="25%", patch=limited("2", "6000Mi")),
            replicas=4,
        )
        await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: workloads(member), {"intel": 2, "amd64": 1, "yitian-arm": 1})
        limits = {
            _subset(each): each["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            for each in await member.all(DEPLOYMENTS)
        }
        assert limits["amd64"] == {"cpu": "3", "memory": "4000Mi"}
        assert limits["yitian-arm"] == {"cpu": "2", "memory": "6000Mi"}
        # OpenKruise cannot divide 7: it rounds to 4 + 2 + 2.
        await scale(member, 7)
        await member.until_equal(lambda: workloads(member), {"intel": 3, "amd64": 2, "yitian-arm": 2})


ADAPTIVE = {
    "type": "Adaptive",
    "adaptive": {"rescheduleCriticalSeconds": 10, "unschedulableLastSeconds": 3600},
}


async def test_replicas_that_ecs_cannot_run_move_to_serverless_for_an_hour() -> None:
    nodes = [NodeShape("ecs-1", cpu="6", labels={"pool": "ecs"}), a_node("serverless-1", pool="acs-serverless")]
    async with a_member(nodes, united_deployments=True) as member:
        patch = {
            "spec": {"containers": [{"name": "main", "env": [{"name": "APP_RUNTIME_MODE", "value": "SERVERLESS"}]}]}
        }
        united = a_united(
            a_subset("ecs"),
            a_subset("acs-serverless", patch=patch),
            replicas=10,
            template=a_template(cpu="1"),
            strategy=ADAPTIVE,
        )
        await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: running(member), Counter({"ecs": 6}))
        await member.pass_time(5)
        assert await workloads(member) == {"ecs": 10, "acs-serverless": 0}
        await member.until_equal(lambda: running(member), Counter({"ecs": 6, "acs-serverless": 4}))
        assert not await is_schedulable(member, "ecs")

        await scale(member, 12)
        await member.until_equal(lambda: running(member), Counter({"ecs": 6, "acs-serverless": 6}))
        await member.create(
            NODES, {**await member.get(NODES, "ecs-1"), "metadata": {"name": "ecs-2", "labels": {"pool": "ecs"}}}
        )
        await member.pass_time(1800, step_s=60)
        await scale(member, 13)
        await member.until_equal(lambda: running(member), Counter({"ecs": 6, "acs-serverless": 7}))
        await member.pass_time(1900, step_s=60)
        await member.until(lambda: is_schedulable(member, "ecs"))
        assert await running(member) == Counter({"ecs": 6, "acs-serverless": 7})  # healthy pods stay
        await scale(member, 15)
        await member.until_equal(lambda: running(member), Counter({"ecs": 8, "acs-serverless": 7}))
        await member.until(lambda: _is_ready(member, 15))
        await scale(member, 7)
        await member.until_equal(lambda: running(member), Counter({"ecs": 7}))


async def test_a_reserved_pod_gets_a_substitute_until_it_is_ready() -> None:
    strategy = {
        "type": "Adaptive",
        "adaptive": {"reserveUnschedulablePods": True, "rescheduleCriticalSeconds": 10, "unschedulableDuration": 1},
    }
    async with a_member([a_node("free", pool="subset-2")], united_deployments=True) as member:
        subsets = a_subset("subset-0", minReplicas=1), a_subset("subset-1", minReplicas=1), a_subset("subset-2")
        await member.create(V1ALPHA1, a_united(*subsets, replicas=2, strategy=strategy))

        async def pods() -> dict[str, tuple[int, int]]:
            """Return the number of pods and of reserved pods by subset."""
            found = await member.all(PODS)
            reserved = Counter(
                _subset(pod) for pod in found if pod["metadata"]["labels"].get(RESERVED_POD_LABEL) == "true"
            )
            return {name: (count, reserved[name]) for name, count in Counter(map(_subset, found)).items()}

        blocked = {"subset-0": (1, 1), "subset-1": (1, 1)}
        for replicas in (2, 4, 2, 4):
            await scale(member, replicas)
            await member.until_equal(pods, {**blocked, "subset-2": (replicas, 0)})
        status = await member.status(UNITED_DEPLOYMENTS, "sample")
        assert status["reservedPods"] == 2
        assert status["labelSelector"].endswith(f"{RESERVED_POD_LABEL}=false")

        # A new template replaces reserved pods as well; their substitutes stay.
        template = {"deploymentTemplate": {"spec": {"template": a_template("busybox:1.33")}}}
        await edit(member, template=template)
        await member.until(lambda: _is_updated(member, "busybox:1.33"), patience_s=120)
        await member.until_equal(pods, {**blocked, "subset-2": (4, 0)}, patience_s=120)

        await member.create(
            NODES, {**await member.get(NODES, "free"), "metadata": {"name": "fixed", "labels": {"pool": "subset-0"}}}
        )
        await member.until_equal(pods, {"subset-0": (4, 0), "subset-1": (1, 1)}, patience_s=120)
        await scale(member, 5)
        await member.until_equal(pods, {"subset-0": (5, 0), "subset-1": (1, 1)}, patience_s=120)


async def _is_updated(member: Member, image: str) -> bool:
    return all(pod["spec"]["containers"][0]["image"] == image for pod in await member.all(PODS))


async def test_an_autoscaler_of_the_cluster_scales_it() -> None:
    async with a_member(ECS, united_deployments=True) as member:
        united = a_united(
            a_subset("ecs", maxReplicas=2), a_subset("acs-serverless"), replicas=2, template=a_template(cpu="100m")
        )
        united["metadata"]["annotations"] = {SIMULATOR_CPU_LOAD: "0s=100m 1m=100m 61s=400m"}
        await member.create(V1ALPHA1, united)
        target = {"apiVersion": V1ALPHA1.api_version, "kind": V1ALPHA1.kind, "name": "sample"}
        metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "Resource", "resource": metric}]}
        await member.create(HORIZONTAL_POD_AUTOSCALERS, an_object(HORIZONTAL_POD_AUTOSCALERS, "sample", spec=spec))
        await member.pass_time(50, step_s=1)
        assert await running(member) == Counter({"ecs": 2})
        await member.until_equal(lambda: running(member), Counter({"ecs": 2, "acs-serverless": 6}))


async def test_partitions_keep_pods_on_the_old_revision() -> None:
    async with a_member([a_node("a", pool="a"), a_node("b", pool="b")], united_deployments=True) as member:
        united = a_united(a_subset("subset-a", "a"), a_subset("subset-b", "b"), replicas=10, kind="statefulSetTemplate")
        await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: running(member), Counter({"subset-a": 5, "subset-b": 5}))
        await member.until(lambda: _is_ready(member, 10))
        first = (await member.status(UNITED_DEPLOYMENTS, "sample"))["currentRevision"]

        async def old_pods() -> Counter[str]:
            pods = await member.all(PODS)
            return Counter(_subset(pod) for pod in pods if pod["spec"]["containers"][0]["image"] == "nginx:1.25")

        template = {"statefulSetTemplate": {"spec": {"template": a_template("nginx:2.0")}}}
        manual = {"type": "Manual", "manualUpdate": {"partitions": {"subset-a": 4, "subset-b": 3}}}
        await edit(member, template=template, updateStrategy=manual)
        await member.until_equal(old_pods, Counter({"subset-a": 4, "subset-b": 3}))
        status = await member.status(UNITED_DEPLOYMENTS, "sample")
        assert status["updateStatus"]["currentPartitions"] == {"subset-a": 4, "subset-b": 3}
        assert status["currentRevision"] == first != status["updatedRevision"]

        await edit(member, updateStrategy={"manualUpdate": {"partitions": {"subset-a": 0}}})
        await member.until_equal(old_pods, Counter({"subset-b": 3}))
        await edit(member, updateStrategy={"manualUpdate": {"partitions": None}})
        await member.until_equal(old_pods, Counter())
        await member.until(lambda: _is_ready(member, 10))
        status = await member.status(UNITED_DEPLOYMENTS, "sample")
        assert status["currentRevision"] == status["updatedRevision"] != first
        numbers = [revision["revision"] for revision in await _revisions(member)]
        assert numbers == [1, 2]


async def _revisions(member: Member) -> list[Object]:
    owned = [
        revision
        for revision in await member.all(CONTROLLER_REVISIONS)
        if revision["metadata"]["ownerReferences"][0]["kind"] == UNITED_DEPLOYMENTS.kind
    ]
    return sorted(owned, key=lambda revision: int(revision["revision"]))


async def test_a_return_to_an_earlier_template_reuses_its_revision_and_history_is_trimmed() -> None:
    async with a_member([a_node("a", pool="a")], united_deployments=True) as member:
        await member.create(V1ALPHA1, a_united(a_subset("a"), replicas=1, revisionHistoryLimit=1))
        await member.until(lambda: _is_ready(member, 1))
        for image in ("nginx:2", "nginx:3", "nginx:4"):
            await edit(member, template={"deploymentTemplate": {"spec": {"template": a_template(image)}}})
            await member.until(lambda image=image: _is_updated(member, image))
            await member.until(lambda: _is_ready(member, 1))
        await member.until_equal(lambda: _numbers(member), [3, 4])
        await edit(member, template={"deploymentTemplate": {"spec": {"template": a_template("nginx:3")}}})
        await member.until_equal(lambda: _numbers(member), [4, 5])


async def _numbers(member: Member) -> list[int]:
    return [revision["revision"] for revision in await _revisions(member)]


async def test_subsets_are_added_removed_and_replaced_by_another_kind() -> None:
    async with a_member([a_node("a", pool="a")], united_deployments=True) as member:
        first, second = a_subset("one", "a"), a_subset("two", "a")
        await member.create(V1ALPHA1, a_united(first, second, replicas=4))
        await member.until_equal(lambda: running(member), Counter(one=2, two=2))
        await edit(member, topology={"subsets": [first, second, a_subset("three", "a")]})
        await member.until_equal(lambda: workloads(member), {"one": 1, "two": 2, "three": 1})
        await edit(member, topology={"subsets": [first]})
        await member.until_equal(lambda: running(member), Counter(one=4))
        await edit(
            member,
            template={
                "deploymentTemplate": None,
                "statefulSetTemplate": {"metadata": {"labels": LABELS}, "spec": {"template": a_template()}},
            },
        )
        await member.until_equal(lambda: workloads(member, STATEFUL_SETS), {"one": 4})
        await member.until_equal(lambda: workloads(member), {})
        messages = {event["message"] for event in await member.all(EVENTS)}
        assert "Delete 1 Subset (Deployment)" in messages or "Delete 1 Subset (StatefulSet)" in messages


async def test_a_second_workload_of_a_subset_is_deleted() -> None:
    async with a_member([a_node("a", pool="a")], united_deployments=True) as member:
        await member.create(V1ALPHA1, a_united(a_subset("one", "a"), replicas=1))
        await member.until_equal(lambda: workloads(member), {"one": 1})
        (deployment,) = await member.all(DEPLOYMENTS)
        metadata = {key: deployment["metadata"][key] for key in ("labels", "ownerReferences", "namespace")}
        await member.pass_time(2)
        copy = {**deployment, "metadata": {**metadata, "name": "copy"}, "status": {}}
        await member.create(DEPLOYMENTS, copy)
        await member.until_equal(lambda: member.names(DEPLOYMENTS), [deployment["metadata"]["name"]])


CLONE_SET_DEFINITION = {
    "apiVersion": CRDS.api_version,
    "kind": CRDS.kind,
    "metadata": {"name": CLONE_SETS.group_resource},
    "spec": {
        "group": CLONE_SETS.group,
        "names": {"kind": "CloneSet", "listKind": "CloneSetList", "plural": "clonesets", "singular": "cloneset"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": CLONE_SETS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


async def test_clone_sets_are_created_once_the_cluster_serves_them() -> None:
    async with a_member(united_deployments=True) as member:
        united = a_united(
            a_subset("ecs", maxReplicas=2),
            a_subset("acs-serverless"),
            replicas=6,
            kind="cloneSetTemplate",
            updateStrategy={"manualUpdate": {"partitions": {"acs-serverless": 3}}},
        )
        await member.create(V1ALPHA1, united)
        await member.until(lambda: _has_condition(member, "False"))
        await member.create(CRDS, CLONE_SET_DEFINITION)
        await member.until(lambda: _has_condition(member, "True"))
        assert await workloads(member, CLONE_SETS) == {"ecs": 2, "acs-serverless": 4}
        partitions = {
            _subset(each): each["spec"]["updateStrategy"]["partition"] for each in await member.all(CLONE_SETS)
        }
        assert partitions == {"ecs": 0, "acs-serverless": 3}
        await member.delete(CRDS, CLONE_SETS.group_resource)
        await member.until(lambda: _has_condition(member, "False"))


async def _has_condition(member: Member, status: str) -> bool:
    conditions = (await member.status(UNITED_DEPLOYMENTS, "sample")).get("conditions")
    return (find(conditions, SUBSET_PROVISIONED) or {}).get("status") == status


async def test_pods_that_block_the_update_of_a_stateful_set_are_replaced() -> None:
    async with a_member([a_node("other", pool="other")], united_deployments=True) as member:
        united = a_united(a_subset("subset-a"), a_subset("subset-b"), replicas=10, kind="statefulSetTemplate")
        spec = united["spec"]["template"]["statefulSetTemplate"]["spec"]
        spec["podManagementPolicy"] = "Parallel"
        await member.create(V1ALPHA1, united)

        async def images() -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            for pod in await member.all(PODS):
                found.setdefault(_subset(pod), []).append(pod["spec"]["containers"][0]["image"])
            return found

        old, new = "nginx:1.25", "nginx:2.0"
        await member.until_equal(images, {"subset-a": [old] * 5, "subset-b": [old] * 5})
        template = {"statefulSetTemplate": {"spec": {"template": a_template(new)}}}
        manual = {"type": "Manual", "manualUpdate": {"partitions": {"subset-a": 4, "subset-b": 3}}}
        await edit(member, template=template, updateStrategy=manual)
        await member.until_equal(images, {"subset-a": [old] * 4 + [new], "subset-b": [old] * 3 + [new] * 2})


async def test_failures_are_stored_in_the_status_until_they_are_gone() -> None:
    async with a_member([a_node("a", pool="a")], united_deployments=True) as member:
        broken = a_subset("one", "a", patch={"spec": {"containers": [{"name": "main", "image": ""}]}})
        await member.create(V1ALPHA1, a_united(broken, replicas=1))

        async def provisioned() -> tuple[str, str]:
            conditions = (await member.status(UNITED_DEPLOYMENTS, "sample")).get("conditions")
            condition = find(conditions, SUBSET_PROVISIONED) or {}
            return condition.get("status", ""), condition.get("message", "")

        status, message = await member.until(lambda: _if_false(provisioned))
        assert status == "False"
        assert "image" in message
        await edit(member, topology={"subsets": [a_subset("one", "a")]})
        await member.until_equal(lambda: running(member), Counter(one=1))
        await member.until_equal(provisioned, ("True", ""))
        await edit(
            member,
            template={
                "deploymentTemplate": None,
                "cloneSetTemplate": {"metadata": {"labels": LABELS}, "spec": {"template": a_template()}},
            },
        )
        _, message = await member.until(lambda: _if_false(provisioned))
        assert message == "the cluster does not serve CloneSet of apps.kruise.io/v1alpha1"
        assert await running(member) == Counter(one=1)


async def _if_false(provisioned: Any) -> tuple[str, str] | None:
    found: tuple[str, str] = await provisioned()
    return found if found[0] == "False" else None


async def test_a_total_that_the_subsets_do_not_allow_changes_nothing() -> None:
    async with a_member([a_node("a", pool="a")], united_deployments=True) as member:
        subsets = a_subset("one", "a", replicas=2), a_subset("two", "a", replicas=1)
        await member.create(V1ALPHA1, a_united(*subsets))  # the total is the sum of both
        await member.until_equal(lambda: running(member), Counter(one=2, two=1))
        assert (await member.get(V1ALPHA1, "sample"))["spec"]["replicas"] == 3
        await scale(member, 5)

        async def reasons() -> set[str]:
            return {event["reason"] for event in await member.all(EVENTS)}

        await member.until(lambda: _contains(reasons, EVENT_SPECIFY_REPLICAS))
        assert await running(member) == Counter(one=2, two=1)
        await scale(member, 3)
        await member.until(lambda: _has_condition(member, "True"))


async def _contains(reasons: Any, wanted: str) -> bool:
    return wanted in await reasons()


@pytest.mark.parametrize(
    ("kind", "resource"), [("cloneSetTemplate", CLONE_SETS), ("advancedStatefulSetTemplate", ADVANCED_STATEFUL_SETS)]
)
async def test_workloads_of_openkruise_run_the_pods_of_their_subsets(kind: str, resource: Resource) -> None:
    async with a_member(ECS, united_deployments=True) as member:
        definitions = [crd for crd in crd_manifests() if crd["metadata"]["name"] == resource.group_resource]
        await member.registry.install_crds(definitions)
        united = a_united(a_subset("ecs", maxReplicas=2), a_subset("acs-serverless"), replicas=5, kind=kind)
        await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: running(member), Counter({"ecs": 2, "acs-serverless": 3}))
        assert await workloads(member, resource) == {"ecs": 2, "acs-serverless": 3}
        await member.until(lambda: _is_ready(member, 5))
        await scale(member, 2)
        await member.until_equal(lambda: running(member), Counter({"ecs": 2}))


async def test_a_deleted_united_deployment_takes_its_workloads_and_their_pods() -> None:
    async with a_member(ECS, united_deployments=True) as member:
        united = a_united(a_subset("ecs", maxReplicas=2), a_subset("acs-serverless"), replicas=3)
        created = await member.create(V1ALPHA1, united)
        await member.until_equal(lambda: running(member), Counter({"ecs": 2, "acs-serverless": 1}))
        deployments = await member.all(DEPLOYMENTS)
        assert {_owner(each) for each in deployments} == {created["metadata"]["uid"]}
        replica_sets = await member.all(REPLICA_SETS)
        assert {_owner(each) for each in replica_sets} == {each["metadata"]["uid"] for each in deployments}
        pods = await member.all(PODS)
        assert {_owner(each) for each in pods} == {each["metadata"]["uid"] for each in replica_sets}
        await member.delete(V1ALPHA1, "sample")
        await member.until_equal(lambda: member.names(DEPLOYMENTS), [])
        await member.until_equal(lambda: member.names(PODS), [])


def _owner(obj: Object) -> str:
    (owner,) = [each for each in obj["metadata"]["ownerReferences"] if each.get("controller")]
    return str(owner["uid"])


async def test_a_protected_one_is_deleted_by_nobody_until_its_label_is_removed() -> None:
    async with a_member(ECS, united_deployments=True) as member:
        client = member.client
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        united = a_united(a_subset("ecs"), replicas=1)
        united["metadata"] |= {"namespace": "shop", "labels": {DELETE_PROTECTION_LABEL: "Cascading"}}
        await client.create(V1ALPHA1, united)
        with pytest.raises(Forbidden, match="Cascading forbids the deletion while"):
            await client.delete(V1ALPHA1, "sample", "shop")
        await client.delete(NAMESPACES, "shop")

        async def is_refused() -> bool:
            namespace = await client.get(NAMESPACES, "shop")
            failed = find(namespace["status"].get("conditions"), "NamespaceDeletionContentFailure") or {}
            return DELETE_PROTECTION_LABEL in failed.get("message", "")

        await member.until(is_refused)
        assert await client.get(V1ALPHA1, "sample", "shop")
        await client.patch(V1ALPHA1, "sample", {"metadata": {"labels": None}}, namespace="shop")

        async def is_gone() -> bool:
            return not any(each["metadata"]["name"] == "shop" for each in (await client.list(NAMESPACES)).items)

        await member.until(is_gone)
