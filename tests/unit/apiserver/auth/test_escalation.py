"""Privilege escalation by writing roles and bindings."""

import httpx
import orjson
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, grant, role, rule, user, wait_allowed_in_default

from federation.apiserver.auth.clientcertificates import Peer


async def test_a_user_cannot_grant_permissions_that_it_does_not_hold(parts: Parts, admin: httpx.AsyncClient) -> None:
    rbac = rule("*", "roles,rolebindings", group="rbac.authorization.k8s.io")
    await grant(admin, rule("get,list", "configmaps"), rbac, to=user("bob"))
    await wait_allowed_in_default(parts)
    roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
    # The verb `*` on roles includes escalate and bind; the second user has neither.
    plain = rule("create,update,patch,get", "roles,rolebindings", group="rbac.authorization.k8s.io")
    await grant(admin, rule("get", "configmaps"), plain, to=user("eve"), name="eve")
    await wait_allowed_in_default(parts, "eve")
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
