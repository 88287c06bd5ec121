"""The account in a member: the exchange of given credentials, the renewal of its token, and the check of its rights."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.member_world import Line, World, member_world

from federation.api import names
from federation.api.federatedtype import default_type_configs, parse_configs
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import ManualClock, to_rfc3339
from federation.apimachinery.errors import Forbidden, Unauthorized
from federation.apimachinery.resources import (
    CLUSTER_ROLES,
    NAMESPACES,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Object,
)
from federation.apiserver.auth.pki import ensure_pki
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.registry.registry import Registry
from federation.client.client import PatchType, Request
from federation.controllers.cluster import names as clusternames
from federation.controllers.cluster.rightscheck import to_condition
from federation.delivery.rules.names import EVENT_WAIT_FOR_RELEASE
from federation.planning.clusters.memberrights import plan_rules

LIFETIME_S = 600


class IssuingLine(Line):
    """A line to a member that serves TokenRequest, as API servers do."""

    def __init__(self, registry: Registry, clock: ManualClock, tokens: ServiceAccountTokens) -> None:
        super().__init__(registry, clock)
        self._manual = clock
        self._tokens = tokens
        self.refuses = False
        self.rejects = False

    async def request(self, request: Request) -> Object:
        if self.rejects:
            raise Unauthorized("Unauthorized")
        if request.subresource != "token":
            return await super().request(request)
        if self.refuses:
            raise Forbidden("no more tokens")
        account = await super().request(Request("get", SERVICE_ACCOUNTS, request.namespace, request.name))
        now = self._manual.now()
        uid = account["metadata"]["uid"]
        issue = self._tokens.issue
        token = issue(namespace=request.namespace, name=request.name, uid=uid, now=now, expires_s=LIFETIME_S)
        return {"status": {"token": token, "expirationTimestamp": to_rfc3339(now + timedelta(seconds=LIFETIME_S))}}


@pytest.fixture
def tokens(tmp_path: Path) -> ServiceAccountTokens:
    return ServiceAccountTokens(ensure_pki(tmp_path, now=ManualClock().now()).token_key)


async def join(world: World, tokens: ServiceAccountTokens) -> IssuingLine:
    member = await world.add_member("m1")
    line = member.line = IssuingLine(member.registry, world.clock, tokens)
    await world.join("m1", useServiceAccount=True)
    await world.until_condition("m1", names.CLUSTER_READY, "True")
    return line


async def secret_data(world: World) -> dict[str, Any]:
    return dict((await world.host.get(SECRETS, "m1", names.SYSTEM_NAMESPACE)).get("data") or {})


async def test_given_credentials_are_exchanged_for_an_account_and_removed(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        await join(world, tokens)
        assert set(await secret_data(world)) == {names.SECRET_SERVICE_ACCOUNT_TOKEN}
        admin = world.members["m1"].admin
        role = await admin.get(CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE)
        assert role["rules"] == plan_rules(parse_configs(default_type_configs()))
        own = await admin.get(ROLES, names.MEMBER_SERVICE_ACCOUNT, names.SYSTEM_NAMESPACE)
        assert own["rules"][0]["resourceNames"] == [names.MEMBER_SERVICE_ACCOUNT]
        credential = (await world.cluster("m1"))["status"]["credential"]
        assert credential["serviceAccount"] == names.MEMBER_SERVICE_ACCOUNT
        assert not [reason for reason, _ in await world.events() if reason == clusternames.EVENT_JOIN_CLUSTER_ERROR]


async def test_a_member_without_token_requests_gives_the_token_of_a_secret(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        admin = (await world.add_member("m1")).admin
        await world.join("m1", useServiceAccount=True)

        async def made() -> bool:
            found = (await admin.list(SECRETS, names.SYSTEM_NAMESPACE)).items
            return any(secret["metadata"]["name"] == names.MEMBER_SERVICE_ACCOUNT for secret in found)

        await world.until(made)
        account = await admin.get(SERVICE_ACCOUNTS, names.MEMBER_SERVICE_ACCOUNT, names.SYSTEM_NAMESPACE)
        name, uid = account["metadata"]["name"], account["metadata"]["uid"]
        token = tokens.issue_for_secret(namespace=names.SYSTEM_NAMESPACE, name=name, uid=uid, secret_name=name)
        data = {"data": {"token": base64.b64encode(token.encode()).decode()}}
        await admin.patch(SECRETS, name, data, patch_type=PatchType.MERGE, namespace=names.SYSTEM_NAMESPACE)
        await world.until_condition("m1", names.CLUSTER_READY, "True")
        credential = (await world.cluster("m1"))["status"]["credential"]
        assert credential == {"serviceAccount": names.MEMBER_SERVICE_ACCOUNT}


async def test_a_token_is_renewed_after_a_third_of_its_life(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        await join(world, tokens)
        first = await secret_data(world)
        await world.pass_time(LIFETIME_S / 3 - 20, step_s=1)
        assert await secret_data(world) == first
        await world.pass_time(40, step_s=1)
        second = await secret_data(world)
        assert second != first
        connection = world.plane.pool.connection("m1")
        assert connection is not None
        assert connection.token.encode() == base64.b64decode(second[names.SECRET_SERVICE_ACCOUNT_TOKEN])
        assert (await world.condition("m1", names.CLUSTER_READY))["status"] == "True"


async def test_a_renewal_that_is_refused_is_reported_and_retried(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        line = await join(world, tokens)
        first = await secret_data(world)
        line.refuses = True
        await world.pass_time(LIFETIME_S / 3 + 20, step_s=1)
        assert await secret_data(world) == first
        messages = [text for reason, text in await world.events() if reason == clusternames.EVENT_TOKEN_RENEWAL_FAILED]
        assert "no more tokens" in messages[0]
        line.refuses = False
        await world.pass_time(70, step_s=1)
        assert await secret_data(world) != first


async def test_a_cluster_whose_secret_comes_later_waits_without_an_event(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        member.line = IssuingLine(member.registry, world.clock, tokens)
        spec = {"apiEndpoint": "https://m1", "insecure": True, "secretRef": {"name": "m1"}, "useServiceAccount": True}
        metadata = {"name": "m1"}
        cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": metadata}
        await world.host.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})
        await world.pass_time(3)
        assert await world.condition("m1", names.CLUSTER_JOINED) == {}
        await world.pass_time(4)
        assert await world.events() == []
        condition = await world.condition("m1", names.CLUSTER_JOINED)
        assert "does not exist yet" in condition["message"]


async def test_leaving_is_complete_when_the_account_was_removed_before_the_finalizer(
    tokens: ServiceAccountTokens,
) -> None:
    async with member_world(0) as world:
        line = await join(world, tokens)
        # A crash after the last request to the member: the claim is gone, and the token is rejected.
        leaving = {"type": names.CLUSTER_JOINED, "status": "False", "reason": clusternames.REASON_CLUSTER_LEAVING}
        times = {"lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
        await world.stop()
        body = {"status": {"conditions": [{**leaving, **times}]}}
        await world.host.patch(FEDERATED_CLUSTERS, "m1", body, patch_type=PatchType.MERGE, subresource="status")
        line.rejects = True
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.restart()

        async def gone() -> bool:
            return not (await world.host.list(FEDERATED_CLUSTERS)).items

        await world.until(gone)


def test_the_condition_names_missing_rights_and_the_command() -> None:
    types = parse_configs(default_type_configs())
    held = plan_rules([type_ for type_ in types if type_.name != "configmaps"])
    condition = to_condition("m1", held, types, "1.2")
    assert (condition.status, condition.reason) == ("False", clusternames.REASON_RIGHTS_MISSING)
    assert "configmaps (create, delete, get, list, patch, watch)" in condition.message
    assert "that version 1.2 needs" in condition.message
    assert "fedctl join --update-credentials m1 --kubeconfig FILE" in condition.message
    assert condition.message.endswith("in all members with: fedctl join --update-credentials --all --kubeconfig FOLDER")


def test_the_condition_tells_sufficient_from_excessive_rights() -> None:
    types = parse_configs(default_type_configs())
    star: list[dict[str, Any]] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    assert to_condition("m1", plan_rules(types), types, "1.2").reason == clusternames.REASON_RIGHTS_SUFFICIENT
    excessive = to_condition("m1", star, types, "1.2")
    assert (excessive.status, excessive.reason) == ("True", clusternames.REASON_RIGHTS_EXCESSIVE)


class ReviewingLine(Line):
    """A line to a member that answers rules reviews with given bytes."""

    answer = b""

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        if path.endswith("selfsubjectrulesreviews"):
            return 201, self.answer
        return await super().raw(method, path, body, timeout_s, accept)


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b'{"status": 1}', b'{"status": {"resourceRules": {}}}', b'{"status": {"incomplete": true}}'],
)
async def test_a_member_that_does_not_tell_its_rules_gets_no_condition(answer: bytes) -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        line = member.line = ReviewingLine(member.registry, world.clock)
        line.answer = answer
        await world.join("m1")
        await world.until_condition("m1", names.CLUSTER_READY, "True")
        assert await world.condition("m1", names.CLUSTER_AUTHORIZED) == {}


async def test_missing_rights_are_published_with_an_event_and_updated() -> None:
    types = parse_configs(default_type_configs())
    async with member_world(0) as world:
        member = await world.add_member("m1")
        line = member.line = ReviewingLine(member.registry, world.clock)
        line.answer = orjson.dumps({"status": {"resourceRules": plan_rules(types[:-1])}})
        await world.join("m1")
        condition = await world.until_condition("m1", names.CLUSTER_AUTHORIZED, "False")
        assert types[-1].resource.group_resource in condition["message"]
        assert (await world.condition("m1", names.CLUSTER_READY))["status"] == "True", "other kinds are delivered"
        await world.pass_time(130, step_s=0.5)
        assert [reason for reason, _ in await world.events()].count(clusternames.EVENT_RIGHTS_MISSING) == 1
        line.answer = orjson.dumps({"status": {"resourceRules": plan_rules(types)}})
        await world.until_condition("m1", names.CLUSTER_AUTHORIZED, "True")


async def test_a_join_that_never_succeeded_is_undone_in_the_member(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        line = member.line = IssuingLine(member.registry, world.clock, tokens)
        line.refuses = True
        await world.join("m1", useServiceAccount=True)
        await world.until_condition("m1", names.CLUSTER_JOINED, "False")
        assert (await member.admin.list(CLUSTER_ROLES)).items, "the account exists, its token does not"
        await world.host.delete(FEDERATED_CLUSTERS, "m1")

        async def gone() -> bool:
            return not (await world.host.list(FEDERATED_CLUSTERS)).items

        await world.until(gone)
        assert (await member.admin.list(CLUSTER_ROLES)).items == []
        namespace = await member.admin.get(NAMESPACES, names.SYSTEM_NAMESPACE)
        assert names.FEDERATED_CLUSTER_UID not in (namespace["metadata"].get("annotations") or {})


async def test_a_member_whose_credentials_are_rejected_names_the_command(tokens: ServiceAccountTokens) -> None:
    async with member_world(0) as world:
        line = await join(world, tokens)
        line.rejects = True
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.pass_time(5)
        messages = [text for reason, text in await world.events() if reason == EVENT_WAIT_FOR_RELEASE]
        assert "fedctl join --update-credentials m1 --kubeconfig FILE" in messages[0]
        line.rejects = False
