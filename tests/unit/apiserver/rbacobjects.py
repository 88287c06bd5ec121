"""RBAC objects and the waits that tests of permissions need: roles, rules, bindings, service accounts."""

from typing import Any

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import eventually

from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, User

BOB = Peer("bob", ("devs",))
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SELF_SUBJECT_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


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


async def wait_allowed(parts: Parts, subject: User, attributes: Attributes) -> None:
    async def is_allowed() -> bool:
        return parts.authorizer.authorize(subject, attributes).is_allowed

    await eventually(is_allowed)


async def wait_allowed_in_default(
    parts: Parts, name: str = "bob", verb: str = "get", resource: str = "configmaps", group: str = ""
) -> None:
    subject = User(name, ("devs", "system:authenticated"))
    await wait_allowed(parts, subject, Attributes(verb, group, resource=resource, namespace="default", name="a"))


async def service_account(admin: httpx.AsyncClient, name: str = "robot") -> dict[str, Any]:
    answer = await admin.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": name}})
    assert answer.status_code == 201
    return answer.json()  # type: ignore[no-any-return]
