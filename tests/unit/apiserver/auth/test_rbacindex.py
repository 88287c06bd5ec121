"""The index of roles and bindings: what a change or a removal takes away, and what responses may contain."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.apiserver.conftest import eventually
from tests.unit.apiserver.rbacobjects import binding, role, rule, user

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Object,
    Resource,
)
from federation.apiserver.admission.requests import CREATE, AdmissionRequest
from federation.apiserver.auth.authorization import decide
from federation.apiserver.auth.escalation import EscalationAdmission
from federation.apiserver.auth.identity import MASTERS, Attributes, User
from federation.apiserver.auth.rbac import RBACAuthorizer
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient

BOB, EVE = User("bob"), User("eve")
GET = Attributes("get", "", "v1", "configmaps", "", "default", "a")
CONTAINERS = ("example.com", "boxes")
"""Boxes contain Secrets."""


@dataclass
class Server:
    """A registry with an authorizer that follows it."""

    registry: Registry
    client: LocalClient
    authorizer: RBACAuthorizer

    def allows(self, subject: User, attributes: Attributes = GET) -> bool:
        return self.authorizer.authorize(subject, attributes).is_allowed

    async def until(self, subject: User, attributes: Attributes = GET, *, is_allowed: bool = True) -> None:
        async def is_so() -> bool:
            return self.allows(subject, attributes) is is_allowed

        await eventually(is_so)

    async def create(self, resource: Resource, obj: Object) -> None:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata = {**obj["metadata"], **({"namespace": "default"} if resource.namespaced else {})}
        await self.client.create(resource, {**head, **obj, "metadata": metadata})

    async def grant(self, *rules: dict[str, Any], to: User, name: str = "r") -> None:
        """Give a user rules in the whole cluster."""
        await self.create(CLUSTER_ROLES, role(name, *rules))
        await self.create(CLUSTER_ROLE_BINDINGS, binding(name, "ClusterRole", name, user(to.name)))

    async def write(self, resource: Resource, obj: Object, who: User = EVE) -> None:
        """Ask the escalation check about an object that the user writes."""
        namespace = "default" if resource.namespaced else ""
        admission = EscalationAdmission(self.registry, self.authorizer)
        request = AdmissionRequest(
            "u", CREATE, resource, ("v1",), "", namespace, "x", who.to_info(), dry_run=False, obj=obj, old=None,
            namespace_labels=None,
        )  # fmt: skip
        await admission.validate(request, lambda check: decide(self.authorizer, who.to_info(), check))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    store = MemoryStore()
    registry = Registry(store, clock=SystemClock())
    await registry.start()
    authorizer = RBACAuthorizer(registry, implied={CONTAINERS: ("", "secrets")})
    tasks = [asyncio.create_task(authorizer.run()), asyncio.create_task(registry.run())]
    await authorizer.wait_synced()
    yield Server(registry, LocalClient(registry, user_agent="admin"), authorizer)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await store.close()


async def test_a_subject_that_leaves_a_binding_loses_its_rules(server: Server) -> None:
    await server.create(ROLES, role("r", rule("get", "configmaps")))
    await server.create(ROLE_BINDINGS, binding("r", "Role", "r", user("bob"), user("eve")))
    await server.until(EVE)
    fewer = {"subjects": [user("bob")]}
    await server.client.patch(ROLE_BINDINGS, "r", fewer, namespace="default")
    await server.until(EVE, is_allowed=False)
    assert server.allows(BOB)
    await server.client.delete(ROLE_BINDINGS, "r", "default")
    await server.until(BOB, is_allowed=False)


async def test_a_subject_keeps_the_rules_of_its_other_bindings(server: Server) -> None:
    for name, verb in (("r", "get"), ("s", "list")):
        await server.create(ROLES, role(name, rule(verb, "configmaps")))
        await server.create(ROLE_BINDINGS, binding(name, "Role", name, user("eve")))
    await server.until(EVE)
    await server.until(EVE, GET._replace(verb="list"))
    await server.client.delete(ROLE_BINDINGS, "s", "default")
    await server.until(EVE, GET._replace(verb="list"), is_allowed=False)
    assert server.allows(EVE)
    await server.client.delete(ROLE_BINDINGS, "r", "default")
    await server.until(EVE, is_allowed=False)
    assert server.authorizer._by_subject == {}, "nothing is kept of who has no rules"


async def test_a_role_that_changes_or_goes_takes_its_rules_along(server: Server) -> None:
    await server.grant(rule("get", "configmaps"), to=BOB)
    await server.until(BOB)
    await server.client.patch(CLUSTER_ROLES, "r", {"rules": [rule("list", "configmaps")]})
    await server.until(BOB, is_allowed=False)
    assert server.allows(BOB, GET._replace(verb="list"))
    await server.client.delete(CLUSTER_ROLES, "r")
    await server.until(BOB, GET._replace(verb="list"), is_allowed=False)


async def test_a_role_that_is_aggregated_no_longer_takes_its_rules_along(server: Server) -> None:
    selected = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}}
    await server.create(CLUSTER_ROLES, {**role("all"), **selected})
    await server.create(CLUSTER_ROLES, role("part", rule("get", "configmaps"), labels={"to": "all"}))
    await server.create(CLUSTER_ROLE_BINDINGS, binding("b", "ClusterRole", "all", user("bob")))
    await server.until(BOB)
    await server.client.patch(CLUSTER_ROLES, "part", {"metadata": {"labels": {"to": "none"}}})
    await server.until(BOB, is_allowed=False)


BOX = Attributes("get", *CONTAINERS[:1], "v1", CONTAINERS[1], "", "default", "a")


@pytest.mark.parametrize(
    ("verb", "needed"),
    [
        ("create", ""),
        ("get", "get"),
        ("update", "get"),
        ("patch", "get"),
        ("delete", "get"),
        ("list", "list"),
        ("watch", "list"),
        ("deletecollection", "list"),
    ],
)
async def test_a_response_that_may_contain_a_secret_needs_the_right_to_read_it(
    server: Server, verb: str, needed: str
) -> None:
    request = BOX._replace(verb=verb)
    await server.grant(rule("*", "boxes", group="example.com"), rule("update", "secrets"), to=BOB)
    await server.until(BOB, BOX._replace(verb="create"))
    assert server.allows(BOB, request) is (not needed)
    if needed:
        reason = server.authorizer.authorize(BOB, request).reason
        assert reason == f'it may contain secrets, which the user cannot {needed} in the namespace "default"'
        other = "get" if needed == "list" else "list"
        await server.grant(rule(other, "secrets"), to=BOB, name="other")
        await server.until(BOB, Attributes(other, "", "v1", "secrets", "", "default", "x"))
        assert not server.allows(BOB, request)
        await server.grant(rule(needed, "secrets", resourceNames=["a"]), to=BOB, name="named")
        await server.until(BOB, Attributes(needed, "", "v1", "secrets", "", "default", "a"))
        assert not server.allows(BOB, request), "which Secret a box contains is unknown"
        await server.grant(rule(needed, "secrets"), to=BOB, name="needed")
        await server.until(BOB, request)


async def test_an_aggregating_role_is_everything_to_the_escalation_check(server: Server) -> None:
    await server.grant(rule("get", "configmaps"), to=EVE)
    await server.until(EVE)
    empty = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}}
    await server.write(CLUSTER_ROLES, role("x", rule("get", "configmaps")))
    for obj in (empty, {"aggregationRule": {}}, {**role("x", rule("get", "configmaps")), **empty}):
        with pytest.raises(Forbidden, match="permissions not currently held"):
            await server.write(CLUSTER_ROLES, obj)
    all_but_escalate = rule("get,list,watch,create,update,patch,delete,bind", "*", group="*")
    await server.grant(all_but_escalate, to=EVE, name="nearly")
    await server.until(EVE, GET._replace(verb="delete"))
    with pytest.raises(Forbidden, match=r'NonResourceURLs:\["\*"\]'):
        await server.write(CLUSTER_ROLES, empty)
    await server.write(CLUSTER_ROLES, empty, User("root", (MASTERS,)))
    await server.grant(rule("escalate", "clusterroles", group=ROLES.group), to=EVE, name="exempt")
    await server.until(EVE, Attributes("escalate", ROLES.group, "v1", "clusterroles", "", "", "x"))
    await server.write(CLUSTER_ROLES, empty)


async def test_binding_an_aggregating_role_needs_the_rules_that_it_has_now(server: Server) -> None:
    selected = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}}
    await server.create(CLUSTER_ROLES, {**role("all"), **selected})
    await server.create(CLUSTER_ROLES, role("part", rule("get", "configmaps"), labels={"to": "all"}))
    await server.grant(rule("list", "configmaps"), to=EVE)
    await server.until(EVE, GET._replace(verb="list"))
    with pytest.raises(Forbidden):
        await server.write(ROLE_BINDINGS, binding("b", "ClusterRole", "all", user("eve")))
    await server.grant(rule("get", "configmaps"), to=EVE, name="get")
    await server.until(EVE)
    await server.write(ROLE_BINDINGS, binding("b", "ClusterRole", "all", user("eve")))


async def test_rights_on_containers_and_their_contents_may_be_those_of_a_namespace(server: Server) -> None:
    boxes = Attributes("get", "example.com", "v1", "boxes", "", "default", "a")
    await server.create(ROLES, role("boxes", rule("get", "boxes", group="example.com")))
    await server.create(ROLE_BINDINGS, binding("boxes", "Role", "boxes", user("bob")))
    await server.create(ROLES, role("other", rule("get", "configmaps")))
    await server.create(ROLE_BINDINGS, binding("other", "Role", "other", user("bob")))
    await server.until(BOB)
    assert not server.allows(BOB, boxes)
    await server.create(ROLES, role("secrets", rule("get", "secrets")))
    await server.create(ROLE_BINDINGS, binding("secrets", "Role", "secrets", user("bob")))
    await server.until(BOB, boxes)
    assert not server.allows(BOB, boxes._replace(namespace="other"))
