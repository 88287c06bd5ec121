"""Impersonation: `kubectl --as`."""

from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, CONFIGMAPS, SELF_SUBJECT_REVIEWS

from federation.apimachinery.errors import Forbidden
from federation.apiserver.auth.identity import Attributes, Decision, User
from federation.apiserver.auth.impersonation import impersonate
from federation.apiserver.auth.policyrules import PolicyRule


async def test_headers_name_the_impersonated_user(parts: Parts, admin: httpx.AsyncClient) -> None:
    async def review(**headers: str) -> Any:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return (await admin.post(SELF_SUBJECT_REVIEWS, json={}, headers=named)).json()

    assert (await review(impersonate_user="eve"))["status"]["userInfo"]["groups"] == ["system:authenticated"]
    account = (await review(impersonate_user="system:serviceaccount:ns:sa"))["status"]["userInfo"]
    assert account["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    full = await review(impersonate_user="eve", impersonate_group="g", impersonate_uid="7", impersonate_extra_a_2fb="x")
    assert full["status"]["userInfo"]["uid"] == "7"
    assert (await review(impersonate_group="g"))["code"] == 400
    assert (await review(impersonate_user="system:serviceaccount:"))["kind"] == "SelfSubjectReview"
    async with connect(parts.app, BOB) as bob:
        answer = await bob.get(CONFIGMAPS, headers={"impersonate-user": "admin", "impersonate-group": "system:masters"})
        assert answer.json()["message"].startswith(
            'users "admin" is forbidden: User "bob" cannot impersonate resource "users"'
        )


class Granted:
    """An `Authorizer` that allows these requests and no others."""

    has_synced = True

    def __init__(self, *allowed: Attributes) -> None:
        self.allowed = allowed

    async def wait_synced(self) -> None:
        return

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(attributes in self.allowed)

    def namespaces_of(self, user: User) -> frozenset[str]:
        return frozenset()

    def rules_of(self, user: User, namespace: str) -> list[PolicyRule]:
        return []

    def role_rules(self, namespace: str, name: str) -> list[PolicyRule] | None:
        return None


def may(resource: str, name: str, group: str = "", version: str = "", sub: str = "", namespace: str = "") -> Attributes:
    return Attributes("impersonate", group, version, resource, sub, namespace, name)


AUTHENTICATION = "authentication.k8s.io"
EVE, GROUP = may("users", "eve"), may("groups", "g")
UID, EXTRA = may("uids", "7", AUTHENTICATION, "v1"), may("userextras", "x", AUTHENTICATION, "v1", "a/b")
ROBOT = may("serviceaccounts", "robot", namespace="shop")


@pytest.mark.parametrize(
    ("headers", "needed", "expected"),
    [
        ({"user": "eve"}, [EVE], User("eve", ("system:authenticated",))),
        ({"user": "eve", "group": "g"}, [EVE, GROUP], User("eve", ("g", "system:authenticated"))),
        ({"user": "eve", "uid": "7"}, [EVE, UID], User("eve", ("system:authenticated",), "7")),
        (
            {"user": "eve", "extra-a%2Fb": "x"},
            [EVE, EXTRA],
            User("eve", ("system:authenticated",), "", {"a/b": ("x",)}),
        ),
        (
            {"user": "system:serviceaccount:shop:robot"},
            [ROBOT],
            User(
                "system:serviceaccount:shop:robot",
                ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"),
            ),
        ),
        *(({"user": name}, [may("users", name)], User(name, ("system:authenticated",))) for name in ("a:b:c:d", "x:")),
        (
            {"user": "system:anonymous", "group": "system:unauthenticated"},
            [may("users", "system:anonymous"), may("groups", "system:unauthenticated")],
            User("system:anonymous", ("system:unauthenticated",)),
        ),
    ],
    ids=["user", "group", "uid", "extra", "service account", "colons", "colon", "anonymous"],
)
async def test_each_part_of_an_identity_needs_its_own_right(
    headers: dict[str, str], needed: list[Attributes], expected: User
) -> None:
    given = [(f"impersonate-{key}".encode(), value.encode()) for key, value in headers.items()]
    assert await impersonate(Granted(*needed), User("bob"), given) == expected
    for missing in needed:
        others = [each for each in needed if each != missing]
        elsewhere = missing._replace(namespace="other" if missing.namespace else "", name="another")
        with pytest.raises(Forbidden):
            await impersonate(Granted(*others, elsewhere), User("bob"), given)
