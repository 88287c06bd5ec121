"""Who may do what: credentials, roles, reviews, impersonation, and that nobody gives away what they do not have."""

import asyncio
import base64
from typing import Any

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts
from tests.unit.server.conftest import connect, eventually

from federation.api import names
from federation.base.clock import SystemClock
from federation.server.access import duration_s
from federation.server.identity import Attributes, User
from federation.server.peers import Peer
from federation.server.tokencontroller import TokenController

BOB = Peer("bob", ("devs",))
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1"


def role(name: str, *rules: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "rules": list(rules)}


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(","), **more}


def binding(name: str, kind: str, role_name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


async def grant(admin: httpx.AsyncClient, *rules: dict[str, Any], to: dict[str, str], name: str = "r") -> None:
    """Give a subject rules in the namespace default."""
    assert (await admin.post(f"{RBAC}/namespaces/default/roles", json=role(name, *rules))).status_code == 201
    answer = await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=binding(name, "Role", name, to))
    assert answer.status_code == 201, answer.text


async def until_allowed(parts: Parts, who: User, attributes: Attributes) -> None:
    async def is_allowed() -> bool:
        return parts.authorizer.authorize(who, attributes).is_allowed

    await eventually(is_allowed)


async def settle(
    parts: Parts, name: str = "bob", verb: str = "get", resource: str = "configmaps", group: str = ""
) -> None:
    who = User(name, ("devs", "system:authenticated"))
    await until_allowed(parts, who, Attributes(verb, group, resource=resource, namespace="default", name="a"))


async def test_without_credentials_only_health_and_version_answer(parts: Parts) -> None:
    async with connect(parts.app, None) as nobody:
        for path in ("/livez", "/readyz", "/healthz", "/version", "/readyz/ping", "/livez?verbose"):
            assert (await nobody.get(path)).status_code == 200, path
        for path in ("/api", "/apis", CONFIGMAPS, "/metrics", "/openapi/v2", "/federation/v1/decisions", "/"):
            answer = await nobody.get(path)
            assert (answer.status_code, answer.json()["message"]) == (401, "Unauthorized"), path


@pytest.mark.parametrize(
    "value", ["Bearer x", "Bearer ", "Basic YTpi", "nonsense", "Bearer " + "x" * 20_000, "Bearer é.b.c"]
)
async def test_bad_credentials_are_refused_on_every_path(parts: Parts, value: str) -> None:
    async with connect(parts.app, None) as client:
        for path in (CONFIGMAPS, "/version"):
            answer = await client.get(path, headers={"authorization": value.encode()})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_static_tokens_work_and_the_scheme_is_case_insensitive(parts: Parts) -> None:
    token = parts.token_file.add(user="ci", groups=["system:masters"])
    async with connect(parts.app, None) as client:
        for scheme in ("Bearer", "bearer"):
            assert (await client.get(CONFIGMAPS, headers={"authorization": f"{scheme} {token}"})).status_code == 200


async def test_forbidden_reads_like_kubernetes(parts: Parts) -> None:
    async with connect(parts.app, BOB) as bob:
        answer = (await bob.get(f"{CONFIGMAPS}/a")).json()
        assert answer["message"] == (
            'configmaps "a" is forbidden: User "bob" cannot get resource "configmaps" in API group "" '
            'in the namespace "default"'
        )
        assert answer["details"] == {"name": "a", "kind": "configmaps"}
        answer = (await bob.post("/apis/apps/v1/namespaces/x/deployments/a/scale", json={})).json()
        assert answer["message"].startswith(
            'deployments.apps "a" is forbidden: User "bob" cannot create resource "deployments/scale"'
        )
        answer = (await bob.get("/api/v1/nodes")).json()
        assert answer["message"].endswith('cannot list resource "nodes" in API group "" at the cluster scope')
        answer = (await bob.get("/metrics")).json()
        assert answer["message"] == 'forbidden: User "bob" cannot get path "/metrics"'
        assert (await bob.get("/apis")).status_code == 200
        assert (await bob.get("/apis/nope/v1/secrets")).status_code == 403


async def test_a_role_binding_holds_in_its_namespace_until_it_is_deleted(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await grant(admin, rule("get,list", "configmaps"), to=user("bob"))
    await settle(parts)
    async with connect(parts.app, BOB) as bob:
        assert (await bob.get(CONFIGMAPS)).status_code == 200
        assert (await bob.get(f"{CONFIGMAPS}?watch=1")).status_code == 403
        assert (await bob.get("/api/v1/namespaces/kube-system/configmaps")).status_code == 403
        assert (await bob.get("/api/v1/configmaps")).status_code == 403
        await admin.delete(f"{RBAC}/namespaces/default/rolebindings/r")

        async def is_refused() -> bool:
            return (await bob.get(CONFIGMAPS)).status_code == 403

        await eventually(is_refused)


async def test_rules_match_names_subresources_and_stars(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(
        admin,
        rule("get", "configmaps", resourceNames=["a"]),
        rule("*", "*/scale", group="apps"),
        rule("patch", "deployments/status", group="apps"),
        to={"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "devs"},
    )
    await settle(parts)
    decide = parts.authorizer.authorize
    who = User("bob", ("devs",))

    def allowed(verb: str, resource: str, *, group: str = "", name: str = "", sub: str = "") -> bool:
        return decide(who, Attributes(verb, group, "v1", resource, sub, "default", name)).is_allowed

    assert allowed("get", "configmaps", name="a")
    assert not allowed("get", "configmaps", name="b")
    assert not allowed("list", "configmaps")
    assert allowed("update", "deployments", group="apps", sub="scale", name="x")
    assert allowed("patch", "deployments", group="apps", sub="status", name="x")
    assert not allowed("patch", "deployments", group="apps", name="x")
    assert not allowed("patch", "replicasets", group="apps", sub="status", name="x")


async def test_cluster_roles_aggregate_through_each_other(parts: Parts, admin: httpx.AsyncClient) -> None:
    custom = role(
        "crontabs",
        rule("get", "crontabs", group="stable.example.com"),
        labels={"rbac.authorization.k8s.io/aggregate-to-view": "true"},
    )
    await admin.post(f"{RBAC}/clusterroles", json=custom)
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=binding("a", "ClusterRole", "admin", user("bob")))
    await settle(parts)
    await settle(parts, resource="crontabs", group="stable.example.com")
    await settle(parts, verb="delete", resource="secrets")
    await settle(parts, verb="create", resource="rolebindings", group="rbac.authorization.k8s.io")
    assert not parts.authorizer.authorize(User("bob"), Attributes("get", resource="nodes")).is_allowed


async def test_a_missing_role_is_named_in_the_reason(parts: Parts, admin: httpx.AsyncClient) -> None:
    await admin.post(f"{RBAC}/clusterrolebindings", json=binding("x", "ClusterRole", "absent", user("bob")))
    async with connect(parts.app, BOB) as bob:

        async def is_named() -> bool:
            message = (await bob.get(CONFIGMAPS)).json()["message"]
            return 'RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found' in message

        await eventually(is_named)


async def test_paths_are_granted_by_cluster_bindings_only(parts: Parts, admin: httpx.AsyncClient) -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/federation/*"]}
    await admin.post(f"{RBAC}/clusterroles", json=role("paths", paths))
    await admin.post(f"{RBAC}/clusterrolebindings", json=binding("paths", "ClusterRole", "paths", user("bob")))
    await until_allowed(parts, User("bob"), Attributes("get", path="/metrics"))
    assert parts.authorizer.authorize(User("bob"), Attributes("get", path="/federation/v1/decisions")).is_allowed
    assert not parts.authorizer.authorize(User("bob"), Attributes("get", path="/metricsx")).is_allowed
    assert not parts.authorizer.authorize(User("bob"), Attributes("post", path="/metrics")).is_allowed


async def test_who_may_read_an_object_may_read_what_was_decided_about_it(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await admin.post(f"{RBAC}/namespaces/default/roles", json=role("web", rule("get", "deployments", group="apps")))
    bound = binding("web", "Role", "web", user("bob"))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=bound)
    await until_allowed(parts, User("bob"), Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
    url = "/federation/v1/decisions"
    async with connect(parts.app, BOB) as bob:
        allowed = await bob.get(f"{url}?kind=Deployment&namespace=default&name=web")
        assert (allowed.status_code, allowed.json()["items"]) == (200, [])
        for query, words in (
            ("kind=Deployment&namespace=other&name=web", 'in API group "apps" in the namespace "other"'),
            ("kind=Deployment&namespace=default", 'cannot list resource "deployments"'),
            ("kind=Deployment&name=web", 'cannot get resource "deployments" in API group "apps" at the cluster scope'),
            ("kind=Nothing&namespace=default&name=web", 'cannot get path "/federation/v1/decisions"'),
            ("kind=Deployment&kind=Secret&namespace=default&name=web", 'cannot get resource "secrets"'),
            ("", 'cannot get path "/federation/v1/decisions"'),
        ):
            refused = await bob.get(f"{url}?{query}")
            assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden"), query
            assert words in refused.json()["message"]


async def test_nobody_grants_what_they_do_not_hold(parts: Parts, admin: httpx.AsyncClient) -> None:
    rbac = rule("*", "roles,rolebindings", group="rbac.authorization.k8s.io")
    await grant(admin, rule("get,list", "configmaps"), rbac, to=user("bob"))
    await settle(parts)
    roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
    # The star on roles holds the verbs escalate and bind too: take it away from a second user.
    plain = rule("create,update,patch,get", "roles,rolebindings", group="rbac.authorization.k8s.io")
    await grant(admin, rule("get", "configmaps"), plain, to=user("eve"), name="eve")
    await settle(parts, "eve")
    async with connect(parts.app, Peer("eve", ())) as eve:
        assert (await eve.post(roles, json=role("small", rule("get", "configmaps")))).status_code == 201
        for rules in (
            rule("get", "secrets"),
            rule("*", "configmaps"),
            rule("get", "*"),
            rule("get", "configmaps", group="*"),
        ):
            answer = await eve.post(roles, json=role("big", rules))
            assert answer.status_code == 403
            assert "is attempting to grant RBAC permissions not currently held" in answer.json()["message"]
        merge = {"content-type": "application/merge-patch+json"}
        patch = orjson.dumps({"rules": [rule("get", "secrets")]})
        assert (await eve.patch(f"{roles}/small", content=patch, headers=merge)).status_code == 403
        assert (await eve.put(f"{roles}/small", json=role("small", rule("get", "secrets")))).status_code == 403
        same = orjson.dumps({"rules": [rule("get", "configmaps", resourceNames=["a"])]})
        assert (await eve.patch(f"{roles}/small", content=same, headers=merge)).status_code == 200
        assert (await eve.post(bindings, json=binding("ok", "Role", "small", user("eve")))).status_code == 201
        answer = await eve.post(bindings, json=binding("bad", "ClusterRole", "cluster-admin", user("eve")))
        assert answer.status_code == 403
        for broken in (role("x", "nonsense"), {"rules": "x"}, {"metadata": "x", "rules": [rule("get", "secrets")]}):
            assert (await eve.post(roles, json=broken)).status_code in (400, 403, 422)
        assert (await eve.post(bindings, json={"metadata": {"name": "b"}, "roleRef": "x"})).status_code == 400
        many = [str(number) for number in range(40)]
        huge = {"verbs": many, "apiGroups": many, "resources": many}
        assert (await eve.post(roles, json=role("huge", huge))).status_code == 400
    async with connect(parts.app, BOB) as bob:
        assert (await bob.post(roles, json=role("any", rule("get", "secrets")))).status_code == 201


async def test_self_subject_reviews(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "configmaps", resourceNames=["a"]), to=user("bob"))
    await settle(parts)
    async with connect(parts.app, BOB) as bob:
        who = (await bob.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={})).json()
        assert who["status"]["userInfo"] == {"username": "bob", "groups": ["devs", "system:authenticated"]}
        spec = {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "a"}}
        answer = await bob.post(f"{REVIEWS}/selfsubjectaccessreviews", json={"spec": spec})
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, True)
        assert answer.json()["status"]["reason"] == 'RBAC: allowed by RoleBinding "r/default" of Role "r" to User "bob"'
        spec = {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
        answer = await bob.post(f"{REVIEWS}/selfsubjectaccessreviews", json={"spec": spec})
        assert answer.json()["status"] == {"allowed": False}
        rules = (await bob.post(f"{REVIEWS}/selfsubjectrulesreviews", json={"spec": {"namespace": "default"}})).json()
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]} in rules[
            "status"
        ]["resourceRules"]
        assert (await bob.post(f"{REVIEWS}/subjectaccessreviews", json={})).status_code == 403


@pytest.mark.parametrize(
    ("resource", "body", "code"),
    [
        ("selfsubjectaccessreviews", {}, 422),
        ("selfsubjectaccessreviews", {"spec": "x"}, 400),
        ("selfsubjectaccessreviews", {"spec": {"resourceAttributes": "x"}}, 400),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "x"}, "nonResourceAttributes": {"path": "/"}}},
            422,
        ),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get"}}}, 422),
        ("subjectaccessreviews", {"spec": {"user": "x", "groups": "y"}}, 400),
        ("selfsubjectrulesreviews", {"spec": {}}, 400),
        ("selfsubjectrulesreviews", [], 400),
    ],
)
async def test_reviews_that_ask_nothing(admin: httpx.AsyncClient, resource: str, body: Any, code: int) -> None:
    assert (await admin.post(f"{REVIEWS}/{resource}", json=body)).status_code == code


async def test_reviews_about_others(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "configmaps"), to=user("bob"))
    await settle(parts)
    attributes = {"verb": "get", "resource": "configmaps", "namespace": "default"}
    spec = {"user": "bob", "groups": ["x"], "resourceAttributes": attributes}
    assert (await admin.post(f"{REVIEWS}/subjectaccessreviews", json={"spec": spec})).json()["status"]["allowed"]
    local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
    assert (await admin.post(local, json={"spec": spec})).json()["status"]["allowed"]
    elsewhere = f"{REVIEWS}/namespaces/other/localsubjectaccessreviews"
    assert (await admin.post(elsewhere, json={"spec": spec})).status_code == 400


async def test_impersonation(parts: Parts, admin: httpx.AsyncClient) -> None:
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    async def name(**headers: str) -> Any:
        return (await admin.post(who, json={}, headers={k.replace("_", "-"): v for k, v in headers.items()})).json()

    assert (await name(impersonate_user="eve"))["status"]["userInfo"]["groups"] == ["system:authenticated"]
    account = (await name(impersonate_user="system:serviceaccount:ns:sa"))["status"]["userInfo"]
    assert account["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    full = await name(impersonate_user="eve", impersonate_group="g", impersonate_uid="7", impersonate_extra_a_2fb="x")
    assert full["status"]["userInfo"]["uid"] == "7"
    assert (await name(impersonate_group="g"))["code"] == 400
    assert (await name(impersonate_user="system:serviceaccount:"))["kind"] == "SelfSubjectReview"
    async with connect(parts.app, BOB) as bob:
        answer = await bob.get(CONFIGMAPS, headers={"impersonate-user": "admin", "impersonate-group": "system:masters"})
        assert answer.json()["message"].startswith(
            'users "admin" is forbidden: User "bob" cannot impersonate resource "users"'
        )


async def service_account(admin: httpx.AsyncClient, name: str = "robot") -> dict[str, Any]:
    answer = await admin.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": name}})
    assert answer.status_code == 201
    return answer.json()  # type: ignore[no-any-return]


async def test_a_service_account_token_lives_as_long_as_its_account(parts: Parts, admin: httpx.AsyncClient) -> None:
    account = await service_account(admin)
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    assert (await admin.post(url, json={"spec": {"expirationSeconds": None}})).status_code == 201
    issued = await admin.post(url, json={"spec": {"expirationSeconds": 600}})
    assert issued.status_code == 201
    token = issued.json()["status"]["token"]
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with connect(parts.app, None, authorization=f"Bearer {token}") as robot:
        info = (await robot.post(who, json={})).json()["status"]["userInfo"]
        assert info["username"] == "system:serviceaccount:default:robot"
        assert info["uid"] == account["metadata"]["uid"]
        reviewed = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", json={"spec": {"token": token}})
        assert reviewed.json()["status"]["authenticated"] is True
        other = {"spec": {"token": token, "audiences": ["vault"]}}
        reviewed = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", json=other)
        assert "authenticated" not in reviewed.json()["status"]
        await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")
        await service_account(admin)
        parts.authenticator._cache.clear()
        assert (await robot.post(who, json={})).status_code == 401


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"expirationSeconds": 1}, 422),
        ({"expirationSeconds": 1 << 40}, 422),
        ({"expirationSeconds": "x"}, 400),
        ({"audiences": "x"}, 400),
        ("x", 400),
        ([1], 400),
        ({"boundObjectRef": {"kind": "Deployment", "name": "x"}}, 400),
        ({"boundObjectRef": {"kind": "Node", "name": "x"}}, 404),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, 404),
        ({"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "other"}}, 409),
    ],
)
async def test_tokens_that_cannot_be_issued(admin: httpx.AsyncClient, spec: Any, code: int) -> None:
    await service_account(admin)
    await admin.post("/api/v1/namespaces/default/secrets", json={"metadata": {"name": "s"}})
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    assert (await admin.post(url, json={"spec": spec})).status_code == code
    assert (await admin.post(url.replace("robot", "absent"), json={})).status_code == 404


async def test_a_bound_token_ends_with_its_object(parts: Parts, admin: httpx.AsyncClient) -> None:
    await service_account(admin)
    secrets = "/api/v1/namespaces/default/secrets"
    await admin.post(secrets, json={"metadata": {"name": "s"}})
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = (await admin.post(url, json={"spec": {"boundObjectRef": reference}})).json()["status"]["token"]
    assert await parts.authenticator.review(token, ()) is not None
    await admin.delete(f"{secrets}/s")
    assert await parts.authenticator.review(token, ()) is None


async def test_a_token_bound_to_a_node_names_it_and_ends_with_it(parts: Parts, admin: httpx.AsyncClient) -> None:
    await service_account(admin)
    node = (await admin.post("/api/v1/nodes", json={"metadata": {"name": "n1"}})).json()
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    spec = {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n1"}}
    token = (await admin.post(url, json={"spec": spec})).json()["status"]["token"]
    reviewed = await parts.authenticator.review(token, ())
    assert reviewed is not None
    assert reviewed.user.extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert reviewed.user.extra["authentication.kubernetes.io/node-uid"] == (node["metadata"]["uid"],)
    await admin.delete("/api/v1/nodes/n1")
    assert await parts.authenticator.review(token, ()) is None


async def test_a_certificate_is_named_by_its_fingerprint(parts: Parts) -> None:
    user = await parts.authenticator.authenticate(Peer("jane", (), "ab12"), b"")
    assert user.extra == {"authentication.kubernetes.io/credential-id": ("X509SHA256=ab12",)}


async def test_token_secrets_are_filled(parts: Parts, admin: httpx.AsyncClient) -> None:
    tokens = parts.authenticator.tokens
    assert tokens is not None
    controller = TokenController(parts.registry, tokens, ca=lambda: b"CA", clock=SystemClock())
    task = asyncio.create_task(controller.run())
    account = await service_account(admin)
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": names.SERVICE_ACCOUNT_TOKEN_TYPE,
    }
    await admin.post("/api/v1/namespaces/default/secrets", json=secret)
    found: dict[str, Any] = {}

    async def is_filled() -> bool:
        found.update((await admin.get("/api/v1/namespaces/default/secrets/s")).json())
        return "token" in (found.get("data") or {})

    await eventually(is_filled)
    assert base64.b64decode(found["data"]["ca.crt"]) == b"CA"
    assert base64.b64decode(found["data"]["namespace"]) == b"default"
    assert found["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    token = base64.b64decode(found["data"]["token"]).decode()
    reviewed = await parts.authenticator.review(token, ())
    assert reviewed is not None
    assert reviewed.user.name == "system:serviceaccount:default:robot"
    await admin.delete("/api/v1/namespaces/default/secrets/s")
    assert await parts.authenticator.review(token, ()) is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_keys_are_published(admin: httpx.AsyncClient) -> None:
    assert (await admin.get("/openid/v1/jwks")).json()["keys"][0]["kty"] == "EC"
    document = (await admin.get("/.well-known/openid-configuration")).json()
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    assert (await admin.get("/openid/v1/nope")).status_code == 404


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), (".5s", 0.5)])
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds
