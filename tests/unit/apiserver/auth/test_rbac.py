"""Role-based access control: rules, bindings and aggregation, on a real registry."""

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect, eventually
from tests.unit.apiserver.rbacobjects import (
    BOB,
    CONFIGMAPS,
    RBAC,
    binding,
    grant,
    role,
    rule,
    user,
    wait_allowed,
    wait_allowed_in_default,
)

from federation.apiserver.auth.identity import Attributes, User


async def test_a_role_binding_holds_in_its_namespace_until_it_is_deleted(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await grant(admin, rule("get,list", "configmaps"), to=user("bob"))
    await wait_allowed_in_default(parts)
    async with connect(parts.app, BOB) as bob:
        assert (await bob.get(CONFIGMAPS)).status_code == 200
        assert (await bob.get(f"{CONFIGMAPS}?watch=1")).status_code == 403
        assert (await bob.get("/api/v1/namespaces/kube-system/configmaps")).status_code == 403
        assert (await bob.get("/api/v1/configmaps")).status_code == 403
        await admin.delete(f"{RBAC}/namespaces/default/rolebindings/r")

        async def is_refused() -> bool:
            return (await bob.get(CONFIGMAPS)).status_code == 403

        await eventually(is_refused)


async def test_a_service_account_without_a_namespace_is_that_of_its_role_binding(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await grant(admin, rule("get", "configmaps"), to={"kind": "ServiceAccount", "name": "robot"})

    def is_allowed(namespace: str) -> bool:
        robot = User(f"system:serviceaccount:{namespace}:robot")
        return parts.authorizer.authorize(
            robot, Attributes("get", "", "v1", "configmaps", "", "default", "a")
        ).is_allowed

    async def is_granted() -> bool:
        return is_allowed("default")

    await eventually(is_granted)
    assert not is_allowed("kube-system")


async def test_rules_match_names_subresources_and_wildcards(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(
        admin,
        rule("get", "configmaps", resourceNames=["a"]),
        rule("*", "*/scale", group="apps"),
        rule("patch", "deployments/status", group="apps"),
        to={"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "devs"},
    )
    await wait_allowed_in_default(parts)
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
    await wait_allowed_in_default(parts)
    await wait_allowed_in_default(parts, resource="crontabs", group="stable.example.com")
    await wait_allowed_in_default(parts, verb="delete", resource="secrets")
    await wait_allowed_in_default(parts, verb="create", resource="rolebindings", group="rbac.authorization.k8s.io")
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
    await wait_allowed(parts, User("bob"), Attributes("get", path="/metrics"))
    assert parts.authorizer.authorize(User("bob"), Attributes("get", path="/federation/v1/decisions")).is_allowed
    assert not parts.authorizer.authorize(User("bob"), Attributes("get", path="/metricsx")).is_allowed
    assert not parts.authorizer.authorize(User("bob"), Attributes("post", path="/metrics")).is_allowed
