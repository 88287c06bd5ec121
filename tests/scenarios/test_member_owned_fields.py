"""What a member's controllers change by design is not corrected, and nobody loses rights for a moment."""

from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    Object,
    Resource,
)
from federation.client.client import WatchEventType
from federation.delivery.rules.names import EVENT_DRIFT_CORRECTED
from federation.planning.rendering.memberowned import QUEUE_LABEL
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR

MEMBER = "east"


async def _place(world: World, resource: Resource) -> None:
    kinds = [{"apiVersion": resource.api_version, "kind": resource.kind}]
    policy = a_policy({MEMBER: 1}, resourceSelectors=kinds, schedulingMode="Duplicate")
    if not resource.namespaced:
        policy["kind"] = "ClusterPropagationPolicy"
        policy["metadata"].pop("namespace", None)
    await world.create(PROPAGATION_POLICIES if resource.namespaced else CLUSTER_PROPAGATION_POLICIES, policy)


async def _deliver(world: World, resource: Resource, obj: Object) -> None:
    await _place(world, resource)
    name = obj["metadata"]["name"]
    await world.create(resource, obj)

    async def is_there() -> bool:
        return await world.members[MEMBER].find(resource, name, _namespace(resource)) is not None

    await world.until(is_there)
    await world.settle()


def _namespace(resource: Resource) -> str:
    return "default" if resource.namespaced else ""


async def _read(world: World, resource: Resource, name: str) -> Object:
    return await world.members[MEMBER].admin.get(resource, name, _namespace(resource))


async def _edit(world: World, resource: Resource, name: str, patch: Object) -> None:
    """Write as a controller of the member, and give the federation the time to correct it."""
    await world.members[MEMBER].merge(resource, name, patch, _namespace(resource))
    await world.settle()


async def _corrections(world: World) -> list[str]:
    return [message for reason, message in await world.events() if reason == EVENT_DRIFT_CORRECTED]


def _rule(what: str) -> Object:
    return {"apiGroups": [""], "resources": [what], "verbs": ["get"]}


def _user(name: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def _job(labels: dict[str, str], **spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "main", "image": "job:1"}], "restartPolicy": "Never"}}
    template["metadata"] = {"annotations": {SIMULATOR_RUN_FOR: "1000s"}}
    metadata = {"name": "crunch", "namespace": "default", "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


@pytest.mark.parametrize(
    ("labels", "spec"), [({}, {}), ({QUEUE_LABEL: "team"}, {"suspend": True})], ids=["without-suspend", "queued"]
)
async def test_a_queue_of_the_member_suspends_and_resumes_a_job(labels: dict[str, str], spec: Object) -> None:
    async with a_world(members=(MEMBER,)) as world:
        await _deliver(world, JOBS, _job(labels, **spec))
        for is_suspended in (False, True, False, True):
            await _edit(world, JOBS, "crunch", {"spec": {"suspend": is_suspended}})
            assert (await _read(world, JOBS, "crunch"))["spec"]["suspend"] is is_suspended
            # A write of ours for another reason keeps it, too.
            await world.merge(JOBS, "crunch", {"metadata": {"labels": {"is-suspended": str(is_suspended)}}})
            await world.settle()
            copy = await _read(world, JOBS, "crunch")
            assert copy["metadata"]["labels"]["is-suspended"] == str(is_suspended)
            assert copy["spec"]["suspend"] is is_suspended
        assert await _corrections(world) == []


async def test_a_job_that_a_user_suspends_and_resumes_follows_in_the_member() -> None:
    async with a_world(members=(MEMBER,)) as world:
        await _deliver(world, JOBS, _job({}))
        for is_suspended in (True, False, True, False):
            await world.merge(JOBS, "crunch", {"spec": {"suspend": is_suspended}})
            await world.settle()
            assert (await _read(world, JOBS, "crunch"))["spec"]["suspend"] is is_suspended
        await world.merge(JOBS, "crunch", {"spec": {"suspend": True}})
        await world.settle()
        await _edit(world, JOBS, "crunch", {"spec": {"suspend": False}})
        assert (await _read(world, JOBS, "crunch"))["spec"]["suspend"] is True, "without a queue it is drift"


async def test_a_claim_that_grew_in_the_member_is_not_shrunk() -> None:
    async with a_world(members=(MEMBER,)) as world:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": spec,
        }
        await _deliver(world, PERSISTENT_VOLUME_CLAIMS, claim)

        async def size() -> str:
            copy = await _read(world, PERSISTENT_VOLUME_CLAIMS, "data")
            return str(copy["spec"]["resources"]["requests"]["storage"])

        await _edit(world, PERSISTENT_VOLUME_CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "5Gi"}}}})
        assert await size() == "5Gi"
        await world.merge(PERSISTENT_VOLUME_CLAIMS, "data", {"metadata": {"labels": {"a": "b"}}})
        await world.settle()
        assert (await _read(world, PERSISTENT_VOLUME_CLAIMS, "data"))["metadata"]["labels"]["a"] == "b"
        assert await size() == "5Gi"
        assert await _corrections(world) == []


async def test_rules_of_an_aggregated_role_are_those_of_the_members_controller() -> None:
    filled, other = [_rule("pods")], [_rule("services")]
    selector = {"clusterRoleSelectors": [{"matchLabels": {"aggregate": "yes"}}]}
    async with a_world(members=(MEMBER,)) as world:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "readers"},
            "rules": other,
        }
        await _deliver(world, CLUSTER_ROLES, role)
        since = (await _read(world, CLUSTER_ROLES, "readers"))["metadata"]["resourceVersion"]

        async def rules() -> Any:
            return (await _read(world, CLUSTER_ROLES, "readers")).get("rules")

        # It becomes an aggregated one: until the member's controller comes, nobody has fewer rights.
        await world.merge(CLUSTER_ROLES, "readers", {"aggregationRule": selector, "rules": []}, "")
        await world.settle()
        assert await rules() == other
        await _edit(world, CLUSTER_ROLES, "readers", {"rules": filled})
        assert await rules() == filled
        await world.merge(CLUSTER_ROLES, "readers", {"metadata": {"labels": {"a": "b"}}}, "")
        await world.settle()
        copy = await _read(world, CLUSTER_ROLES, "readers")
        assert copy["metadata"]["labels"]["a"] == "b"
        assert copy["aggregationRule"] == selector
        assert await rules() == filled
        assert await _corrections(world) == []
        assert await _values(world, CLUSTER_ROLES, "readers", "rules", since) == [other, filled]


@pytest.mark.parametrize(
    ("resource", "field", "values"),
    [
        (ROLES, "rules", [[_rule("pods")], [_rule("pods"), _rule("services")], [_rule("services")]]),
        (CLUSTER_ROLES, "rules", [[_rule("pods")], [_rule("pods"), _rule("services")], [_rule("services")]]),
        (ROLE_BINDINGS, "subjects", [[_user("a")], [_user("a"), _user("b")], [_user("b")]]),
        (CLUSTER_ROLE_BINDINGS, "subjects", [[_user("a")], [_user("a"), _user("b")], [_user("b")]]),
    ],
    ids=lambda value: value.kind if isinstance(value, Resource) else "",
)
async def test_rights_change_in_one_write(resource: Resource, field: str, values: list[Any]) -> None:
    async with a_world(members=(MEMBER,)) as world:
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}, field: values[0]}
        if resource.namespaced:
            obj["metadata"]["namespace"] = "default"
        if field == "subjects":
            obj["roleRef"] = {"apiGroup": resource.group, "kind": "ClusterRole", "name": "view"}
        await _deliver(world, resource, obj)
        since = (await _read(world, resource, "x"))["metadata"]["resourceVersion"]
        for value in values[1:]:
            await world.merge(resource, "x", {field: value}, _namespace(resource))
            await world.settle()
        # Somebody adds to it and removes it in the member, and is corrected.
        await _edit(world, resource, "x", {field: values[1]})
        await _edit(world, resource, "x", {field: None})
        assert await _values(world, resource, "x", field, since) == [*values[1:], values[1], values[2], None, values[2]]


async def _values(world: World, resource: Resource, name: str, field: str, since: str) -> list[Any]:
    """Return the values that the field had in the member after a revision, without repetitions."""
    last, seen = (await _read(world, resource, name))["metadata"]["resourceVersion"], []
    async for batch in world.members[MEMBER].admin.watch(resource, _namespace(resource), resource_version=since):
        for event in batch:
            if event.object["metadata"].get("name") != name:
                continue
            assert event.type is WatchEventType.MODIFIED, "it is never deleted to change it"
            if not seen or seen[-1] != event.object.get(field):
                seen.append(event.object.get(field))
            if event.object["metadata"]["resourceVersion"] == last:
                return seen
    return seen
