"""Conformance area: authentication and RBAC."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.support.rest import Api, Refused, eventually, refused

AUTH = "/apis/authorization.k8s.io/v1"


def grant(api: Api, *rules: dict[str, Any]) -> None:
    """Give the service account `nobody` rules in its namespace."""
    api.create("rolebindings", binding(api, "Role", "r"))
    api.create("roles", {"metadata": {"name": "r"}, "rules": list(rules)})


def binding(api: Api, kind: str, name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}],
    }


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(","), **more}


def allowed(act: Any) -> bool:
    try:
        act()
    except Refused as refusal:
        if refusal.code != 403:
            raise
        return False
    return True


def test_a_user_without_a_role_has_no_permissions(nobody: Api) -> None:
    user = f"system:serviceaccount:{nobody.namespace}:nobody"
    text = f'configmaps is forbidden: User "{user}" cannot list resource "configmaps" in API group "" in the namespace'
    with refused(403, "Forbidden", text):
        nobody.list("configmaps")


@pytest.mark.every_store
def test_a_role_allows_what_it_names(api: Api, nobody: Api) -> None:
    grant(api, rule("get,list", "configmaps"))
    eventually(lambda: allowed(lambda: nobody.list("configmaps")))
    with refused(403, "Forbidden", "cannot create"):
        nobody.create("configmaps", a_config_map())
    with refused(403, "Forbidden", "secrets is forbidden"):
        nobody.list("secrets")


def test_a_role_is_limited_to_its_namespace(api: Api, nobody: Api) -> None:
    grant(api, rule("list", "configmaps"))
    eventually(lambda: allowed(lambda: nobody.list("configmaps")))
    with refused(403, "Forbidden"):
        nobody.list("configmaps", namespace="default")
    with refused(403, "Forbidden", "at the cluster scope"):
        nobody.list("configmaps", namespace="")


def test_a_role_may_name_objects(api: Api, nobody: Api) -> None:
    for name in ("a", "b"):
        api.create("configmaps", a_config_map(name))
    grant(api, rule("get", "configmaps", resourceNames=["a"]))
    eventually(lambda: allowed(lambda: nobody.get("configmaps", "a")))
    with refused(403, "Forbidden"):
        nobody.get("configmaps", "b")


def test_subresources_are_named_apart(api: Api, nobody: Api) -> None:
    grant(api, rule("get", "deployments/scale", "apps"))
    with refused(404):
        eventually(lambda: allowed(lambda: nobody.get("deployments", "web", "scale")))
    with refused(403, "Forbidden"):
        nobody.get("deployments", "web")


def test_a_cluster_role_is_bound_in_a_namespace(api: Api, nobody: Api) -> None:
    api.create("rolebindings", binding(api, "ClusterRole", "view"))
    eventually(lambda: allowed(lambda: nobody.list("configmaps")))
    with refused(403, "Forbidden"):
        nobody.list("secrets")


def test_a_role_cannot_grant_more_than_its_author_has(api: Api, nobody: Api) -> None:
    grant(api, rule("create", "roles", "rbac.authorization.k8s.io"), rule("get", "configmaps"))
    eventually(lambda: allowed(lambda: nobody.create("roles", {"metadata": {"name": "a"}, "rules": []})))
    with refused(403, "Forbidden", "attempting to grant RBAC permissions not currently held"):
        nobody.create("roles", {"metadata": {"name": "b"}, "rules": [rule("delete", "secrets")]})
    nobody.create("roles", {"metadata": {"name": "c"}, "rules": [rule("get", "configmaps")]})


def test_a_role_reference_cannot_change(api: Api, nobody: Api) -> None:
    grant(api)
    with refused(422, "Invalid", "cannot change roleRef"):
        api.patch("rolebindings", "r", {"roleRef": {"name": "other"}})


def test_every_user_may_review_its_own_permissions(api: Api, nobody: Api) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": api.namespace}}}
    assert api.send("POST", f"{AUTH}/selfsubjectaccessreviews", review).json()["status"]["allowed"] is True
    assert nobody.send("POST", f"{AUTH}/selfsubjectaccessreviews", review).json()["status"]["allowed"] is False


def test_rules_are_listed(api: Api, nobody: Api) -> None:
    grant(api, rule("get", "configmaps"))
    review = {"spec": {"namespace": api.namespace}}

    def listed() -> bool:
        status = nobody.send("POST", f"{AUTH}/selfsubjectrulesreviews", review).json()["status"]
        return any(
            found["verbs"] == ["get"] and found["resources"] == ["configmaps"] for found in status["resourceRules"]
        )

    eventually(listed)


def test_an_administrator_reviews_another_user_s_permissions(api: Api, nobody: Api) -> None:
    user = f"system:serviceaccount:{api.namespace}:nobody"
    attributes = {"verb": "list", "resource": "secrets", "namespace": api.namespace}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    assert api.send("POST", f"{AUTH}/subjectaccessreviews", review).json()["status"]["allowed"] is False


def test_a_self_subject_review_returns_the_user(nobody: Api) -> None:
    """[sig-auth] SelfSubjectReview should support SelfSubjectReview API operations."""
    answer = nobody.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).json()
    info = answer["status"]["userInfo"]
    assert info["username"] == f"system:serviceaccount:{nobody.namespace}:nobody"
    assert {"system:serviceaccounts", f"system:serviceaccounts:{nobody.namespace}"} <= set(info["groups"])


def test_a_token_is_reviewed(api: Api, nobody: Api) -> None:
    review = {"spec": {"token": nobody.connection.token}}
    status = api.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).json()["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{api.namespace}:nobody"


@pytest.mark.every_store
def test_a_token_is_invalid_after_its_account_is_deleted(api: Api, nobody: Api) -> None:
    """[sig-auth] ServiceAccounts: tokens are invalid once the account is deleted."""
    api.delete("serviceaccounts", "nobody")

    def is_unknown() -> bool:
        try:
            nobody.list("configmaps")
        except Refused as refusal:
            return refusal.code == 401
        return False

    eventually(is_unknown)


def test_a_wrong_token_is_unauthorized(nobody: Api) -> None:
    with refused(401, "Unauthorized"):
        nobody.send("GET", nobody.url("configmaps"), headers={"authorization": "Bearer nonsense"})


def test_an_administrator_acts_as_another(api: Api) -> None:
    with refused(403, "Forbidden", 'User "jane" cannot list resource "configmaps"'):
        api.send("GET", api.url("configmaps"), headers={"impersonate-user": "jane"})


def test_impersonation_needs_a_permission(nobody: Api) -> None:
    with refused(403, "Forbidden", "cannot impersonate"):
        nobody.send("GET", nobody.url("configmaps"), headers={"impersonate-user": "jane"})


def test_default_roles_exist(api: Api) -> None:
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery"} <= set(api.names("clusterroles"))


def test_cluster_roles_aggregate(api: Api) -> None:
    name = f"{api.namespace}-sum"
    label = {f"example.com/{api.namespace}": "true"}
    summed = {"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label}]}}
    api.create("clusterroles", {**summed, "rules": []})
    part = {"metadata": {"name": f"{api.namespace}-part", "labels": label}, "rules": [rule("get", "pods")]}
    api.create("clusterroles", part)
    api.create("rolebindings", binding(api, "ClusterRole", name))
    attributes = {"verb": "get", "resource": "pods", "namespace": api.namespace}
    user = f"system:serviceaccount:{api.namespace}:nobody"
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    eventually(lambda: api.send("POST", f"{AUTH}/subjectaccessreviews", review).json()["status"]["allowed"])
    eventually(lambda: api.get("clusterroles", name).get("rules") == [rule("get", "pods")])
    more = {"metadata": {"name": f"{api.namespace}-more", "labels": label}, "rules": [rule("get", "nodes")]}
    api.create("clusterroles", more)
    eventually(lambda: api.get("clusterroles", name)["rules"] == [rule("get", "nodes"), rule("get", "pods")])
    api.delete("clusterroles", f"{api.namespace}-part")
    eventually(lambda: api.get("clusterroles", name)["rules"] == [rule("get", "nodes")])
    eventually(lambda: not api.send("POST", f"{AUTH}/subjectaccessreviews", review).json()["status"]["allowed"])
    for role in (name, f"{api.namespace}-more"):
        api.delete("clusterroles", role)


def test_an_impersonated_user_is_shown_with_uid_and_extra(api: Api) -> None:
    headers = {
        "impersonate-user": "jane",
        "impersonate-uid": "42",
        "impersonate-group": "dev",
        "impersonate-extra-example.com%2fscopes": "all",
    }
    url = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    shown = api.send("POST", url, {}, headers=headers).json()["status"]["userInfo"]
    assert shown == {
        "username": "jane",
        "uid": "42",
        "groups": ["dev", "system:authenticated"],
        "extra": {"example.com/scopes": ["all"]},
    }


def test_impersonating_a_uid_needs_a_separate_permission(api: Api, nobody: Api) -> None:
    name = f"{api.namespace}-as-jane"
    rules = [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"]}]
    api.create("clusterroles", {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    api.create("clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    url = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    def act(**headers: str) -> str:
        named = {f"impersonate-{key}": value for key, value in headers.items()}
        answer = nobody.http.request("POST", url, json={}, headers=named)
        return answer.json().get("status", {}).get("userInfo", {}).get("username", "") if answer.is_success else ""

    eventually(lambda: act(user="jane") == "jane")
    assert [act(user="joe"), act(user="jane", uid="42"), act(user="jane", group="dev")] == ["", "", ""]
    assert act(**{"user": "jane", "extra-scopes": "all"}) == ""
    api.delete("clusterrolebindings", name)
    api.delete("clusterroles", name)


def test_a_review_with_an_unknown_field_is_refused_or_gets_a_warning(api: Api) -> None:
    review = {"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods", "name_space": "x"}}}
    with refused(400, "BadRequest", 'unknown field "spec.resourceAttributes.name_space"'):
        api.send("POST", f"{AUTH}/subjectaccessreviews", review, fieldValidation="Strict")
    answer = api.send("POST", f"{AUTH}/subjectaccessreviews", review)
    assert "name_space" in answer.headers["warning"]
    assert answer.json()["status"]["allowed"] is False


def test_questions_are_described_for_explain_and_validation(api: Api) -> None:
    document = api.send("GET", "/openapi/v3/apis/authorization.k8s.io/v1").json()
    assert "post" in document["paths"]["/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"]
    local = "/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
    assert "post" in document["paths"][local]
    schemas = document["components"]["schemas"]
    assert "user" in schemas["io.k8s.api.authorization.v1.SubjectAccessReviewSpec"]["properties"]
