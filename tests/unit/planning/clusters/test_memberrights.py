"""The rights of the account in a member, and the comparison with the rights that it has."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, parse_configs
from federation.planning.clusters.memberrights import (
    describe_rights,
    find_missing_rights,
    is_unrestricted,
    plan_account_rules,
    plan_rules,
)

ALL = parse_configs(default_type_configs())
VERBS = ["create", "delete", "get", "list", "patch", "watch"]


def types(*wanted: str) -> list[FederatedType]:
    return [type_ for type_ in ALL if type_.name in wanted]


def verbs_on(rules: list[dict[str, Any]], group: str, resource: str) -> set[str]:
    """Return the verbs on all objects of the resource."""
    fitting = [r for r in rules if group in r.get("apiGroups", ()) and resource in r["resources"]]
    return {verb for rule in fitting if not rule.get("resourceNames") for verb in rule["verbs"]}


def test_no_rule_has_a_wildcard() -> None:
    for rule in plan_rules(ALL):
        assert "*" not in (*rule["verbs"], *rule.get("apiGroups", ()), *rule.get("resources", ()))


def test_a_federated_type_gets_the_verbs_of_sync_and_nothing_else() -> None:
    rules = plan_rules(types("configmaps"))
    assert verbs_on(rules, "", "configmaps") == set(VERBS)
    assert verbs_on(rules, "", "secrets") == set()
    assert verbs_on(rules, "", "namespaces") == set()
    assert verbs_on(rules, "apps", "replicasets") == set()
    assert verbs_on(rules, "", "pods") == {"list", "watch"}


def test_replica_sets_are_read_for_auto_migration_only() -> None:
    assert verbs_on(plan_rules(types("deployments.apps")), "apps", "replicasets") == {"list", "watch"}


@pytest.mark.parametrize(
    ("federated", "escalates", "binds"),
    [
        ("roles", True, False),
        ("clusterroles", True, False),
        ("rolebindings", False, True),
        ("clusterrolebindings", False, True),
    ],
)
def test_escalate_and_bind_follow_from_federated_rbac_kinds(federated: str, escalates: bool, binds: bool) -> None:
    group = "rbac.authorization.k8s.io"
    rules = plan_rules(types("configmaps", f"{federated}.{group}"))
    found = verbs_on(rules, group, "clusterroles") | verbs_on(rules, group, "roles")
    assert ("escalate" in found, "bind" in found) == (escalates, binds)
    assert not {"escalate", "bind"} & {verb for rule in plan_rules(types("secrets")) for verb in rule["verbs"]}


def test_an_account_may_request_tokens_for_itself_only() -> None:
    (rule,) = plan_account_rules(["one", "two"])
    assert rule["resources"] == ["serviceaccounts/token"]
    assert rule["resourceNames"] == ["one", "two"]


def test_the_planned_rules_lack_nothing() -> None:
    assert find_missing_rights(plan_rules(ALL), ALL) == {}
    assert find_missing_rights([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}], ALL) == {}


def test_missing_rights_are_listed_by_resource() -> None:
    held = plan_rules(types("configmaps", "secrets"))
    missing = find_missing_rights(held, types("configmaps", "secrets", "deployments.apps"))
    assert missing == {"deployments.apps": VERBS, "replicasets.apps": ["list", "watch"]}
    assert describe_rights(missing) == f"deployments.apps ({', '.join(VERBS)}); replicasets.apps (list, watch)"


def test_a_rule_for_named_objects_is_no_rule_for_all() -> None:
    limited = {"verbs": VERBS, "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"]}
    held = [*plan_rules([]), limited]
    assert find_missing_rights(held, types("configmaps")) == {"configmaps": VERBS}


def test_named_objects_may_be_covered_by_several_rules() -> None:
    held = [rule for rule in plan_rules([]) if "namespaces" not in rule.get("resources", ())]
    for name in ("kube-system", names.SYSTEM_NAMESPACE):
        held.append({"verbs": ["*"], "apiGroups": [""], "resources": ["namespaces"], "resourceNames": [name]})
    assert find_missing_rights(held, []) == {}
    assert find_missing_rights(held[:-1], []) == {"namespaces": ["delete", "get", "patch"]}


def test_many_missing_resources_are_summarised() -> None:
    assert describe_rights(find_missing_rights([], ALL)).endswith("more")


@pytest.mark.parametrize("rules", [[{}], [{"verbs": "*", "apiGroups": 1, "resources": [None]}]], ids=["empty", "odd"])
def test_a_members_malformed_rules_grant_nothing(rules: list[dict[str, Any]]) -> None:
    assert "configmaps" in find_missing_rights(rules, types("configmaps"))
    assert not is_unrestricted(rules)


def test_an_unrestricted_rule_is_recognised() -> None:
    star = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert is_unrestricted([{}, star])
    assert not is_unrestricted([{**star, "verbs": ["get"]}])


@pytest.mark.parametrize("lacking", [{"verbs": ["other"]}, {"apiGroups": ["other"]}, {"resources": ["other"]}])
def test_a_rule_grants_what_all_its_parts_name(lacking: dict[str, Any]) -> None:
    rule = {"verbs": VERBS, "apiGroups": [""], "resources": ["configmaps"]}
    assert find_missing_rights([*plan_rules([]), rule], types("configmaps")) == {}
    assert find_missing_rights([*plan_rules([]), rule | lacking], types("configmaps")) == {"configmaps": VERBS}
