"""For a kind that the accounts in members may not write, the status names the remedy, and it is delivered once they may."""

import base64
from typing import Any

import orjson
from tests.support.deceits import Deceit, Send
from tests.support.faults import STORMS
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.federatedtype import default_type_configs, parse_configs
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, SECRETS, Object, Resource
from federation.client.client import Request
from federation.planning.clusters.memberrights import UPDATE_ALL, plan_rules

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
NAME = "widgets.example.com"
MEMBERS = ("east", "north", "west")
SOON_S = 10


class Rights(Deceit):
    """A member whose account for us has the rights of the shipped kinds only, and all rights once they are given."""

    are_given = False

    async def answer(self, request: Request, send: Send) -> Object:
        if request.resource.group == WIDGETS.group and not self.are_given:
            raise Forbidden(f'{NAME} is forbidden: User "federation" cannot {request.verb} resource "widgets"')
        return await send(request)

    def document(self, path: str, code: int, body: bytes) -> tuple[int, bytes]:
        if not path.endswith("/selfsubjectrulesreviews"):
            return code, body
        rules = plan_rules(parse_configs(default_type_configs()))
        if self.are_given:
            rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        return 201, orjson.dumps({"status": {"resourceRules": rules}})


def definition() -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": [version]}
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": {"name": NAME}, "spec": spec}


def widget(name: str) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}}


async def federate(world: World) -> None:
    """Federate the kind, and place all of its objects and all Deployments everywhere."""
    source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    spec = {"sourceType": source, "controllers": [["kubeadmiral.io/global-scheduler"]]}
    config = {"apiVersion": FEDERATED_TYPE_CONFIGS.api_version, "kind": "FederatedTypeConfig"}
    await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": {"name": NAME}, "spec": spec})
    kinds = [{"apiVersion": each.api_version, "kind": each.kind} for each in (WIDGETS, DEPLOYMENTS)]
    policy = a_policy(dict.fromkeys(MEMBERS, 1), schedulingMode="Duplicate", resourceSelectors=kinds)
    await world.create(PROPAGATION_POLICIES, policy)


async def give_rights(world: World, cluster: str) -> None:
    """Do what `fedctl join --update-credentials` does: more rights, and other credentials."""
    rights = world.members[cluster].line.deceit
    assert isinstance(rights, Rights)
    rights.are_given = True
    token = {"data": {names.SECRET_BOOTSTRAP_TOKEN: base64.b64encode(b"another").decode()}}
    await world.merge(SECRETS, cluster, token, names.SYSTEM_NAMESPACE)


async def holders(world: World, name: str) -> set[str]:
    found = set()
    for member in world.members.values():
        try:
            if await member.find(WIDGETS, name) is not None:
                found.add(member.name)
        except NotFound:
            continue
    return found


async def authorized(world: World, cluster: str) -> tuple[str, str]:
    status = (await world.user.get(FEDERATED_CLUSTERS, cluster)).get("status") or {}
    found = conditions.find(status.get("conditions"), names.CLUSTER_AUTHORIZED) or {}
    return str(found.get("reason")), str(found.get("message"))


async def propagated(world: World, name: str) -> Any:
    federated = await world.user.get(FEDERATED_OBJECTS, f"{name}-{NAME}", "default")
    return conditions.find((federated.get("status") or {}).get("conditions"), names.PROPAGATED) or {}


async def soon(world: World, name: str, expected: set[str]) -> None:
    for _ in range(SOON_S):
        if await holders(world, name) == expected:
            return
        await world.pass_time(1)
    raise AssertionError(f"expected {expected} within {SOON_S} s, last seen: {await holders(world, name)}")


async def test_what_lacks_rights_is_told_and_arrives_cluster_by_cluster_through_failures() -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        for member in world.members.values():
            member.line.begin_deceit(Rights())
            await member.admin.create(CRDS, definition())
        await world.create(CRDS, definition())
        await federate(world)
        await world.create(WIDGETS, widget("a"))
        await world.create(DEPLOYMENTS, a_deployment("web", 1))
        await world.pass_time(130)  # the pauses between attempts are long by now
        assert await world.replicas("web") == dict.fromkeys(MEMBERS, 1), "other kinds do not wait"
        assert await holders(world, "a") == set()
        reason, message = await authorized(world, "north")
        assert (reason, UPDATE_ALL in message) == ("RightsMissing", True)
        condition = await propagated(world, "a")
        assert condition["status"] == "False"
        assert "update-credentials" in condition["message"], condition

        # One cluster gets the rights while another one is lost and the control plane starts again.
        await world.lose("east")
        await world.restart()
        await give_rights(world, "north")
        await soon(world, "a", {"north"})
        # The next one gets them in the middle of errors, and loses the kind before all is delivered.
        east = world.members["east"]
        east.line.faults.begin(0.5, *STORMS)
        await give_rights(world, "east")
        await world.bring_back("east")
        await east.admin.delete(CRDS, NAME)
        await world.create(WIDGETS, widget("b"))
        world.kill()
        await world.restart()
        await world.pass_time(30)
        assert await holders(world, "b") == {"north"}
        await east.admin.create(CRDS, definition())
        east.line.faults.end()
        await world.pass_time(60)
        assert await holders(world, "a") == {"east", "north"}
        await give_rights(world, "west")
        for name in ("a", "b"):
            await soon(world, name, set(MEMBERS))
        await world.settle()
        assert (await propagated(world, "b"))["status"] == "True"
        assert (await authorized(world, "west"))[0] == "RightsExcessive"
