"""Classification of requests by FlowSchemas."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import ANONYMOUS, Attributes, User, service_account_user
from federation.apiserver.http.prioritylevels import to_configuration
from federation.apiserver.registry.suggestedflowcontrol import flow_control_specs
from federation.apiserver.verbs.requestoptions import SYSTEM_NAMESPACES

PODS = Attributes("list", "", "v1", "pods")
LEASE = Attributes("update", "coordination.k8s.io", "v1", "leases", namespace="kube-system", name="x")
LEASES = Attributes("list", "coordination.k8s.io", "v1", "leases")
LOG = Attributes("get", "", "v1", "pods", "log", namespace="shop", name="x")
PATH = Attributes("get", path="/openapi/v2")
JANE = User("jane", ("system:authenticated",))


def objects(specs: dict[str, Any]) -> list[Object]:
    return [{"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec} for name, spec in specs.items()]


SUGGESTED = flow_control_specs((*SYSTEM_NAMESPACES, "kube-admiral-system"))
LEVELS = objects(SUGGESTED["PriorityLevelConfiguration"])
SCHEMAS = objects(SUGGESTED["FlowSchema"])


def rule(**changes: Any) -> Object:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    return {"subjects": [{"kind": "User", "user": {"name": "*"}}], "resourceRules": [{**everything, **changes}]}


def schema(name: str, rules: list[Object], *, level: str = "system", precedence: int = 50, method: str = "") -> Object:
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules}
    return {"metadata": {"name": name}, "spec": spec | ({"distinguisherMethod": {"type": method}} if method else {})}


def level_of(user: User, attributes: Attributes, *added: Object) -> str:
    return to_configuration([*SCHEMAS, *added], LEVELS).classify(user, attributes).level.name


@pytest.mark.parametrize(
    ("user", "attributes", "level"),
    [
        (User("admin", ("system:masters", "system:authenticated")), PODS, "exempt"),
        (User("system:node:n1", ("system:nodes", "system:authenticated")), PODS, "system"),
        (User("system:kube-scheduler", ("system:authenticated",)), LEASE, "system"),
        (service_account_user("shop", "operator", "1"), LEASE, "system"),
        (service_account_user("shop", "operator", "1"), LEASES, "workloads"),
        (User("system:kube-scheduler", ("system:authenticated",)), PODS, "controllers"),
        (service_account_user("kube-system", "gc", "1"), PODS, "controllers"),
        (service_account_user("kube-admiral-system", "agent", "1"), PATH, "controllers"),
        (service_account_user("kube-system-of-mine", "x", "1"), PODS, "workloads"),
        (service_account_user("default", "x", "1"), PODS, "workloads"),
        (JANE, PODS, "workloads"),
        (JANE, PATH, "workloads"),
        (JANE, LEASE, "workloads"),
        (ANONYMOUS, PODS, "catch-all"),
        (User("jane", ("system:unauthenticated",)), PODS, "catch-all"),
        # No schema matches a user without groups.
        (User("nobody"), PATH, "catch-all"),
    ],
)
def test_the_suggested_schemas_classify_by_user_and_attributes(user: User, attributes: Attributes, level: str) -> None:
    assert level_of(user, attributes) == level


@pytest.mark.parametrize(
    ("changes", "attributes", "is_matched"),
    [
        ({}, PODS, True),
        ({}, PATH, False),
        ({"verbs": ["get"]}, PODS, False),
        ({"apiGroups": ["apps"]}, PODS, False),
        ({"resources": ["pods"]}, PODS, True),
        ({"resources": ["pods"]}, LOG, False),
        ({"resources": ["pods/log"]}, LOG, True),
        ({"clusterScope": False}, PODS, False),
        ({"clusterScope": False}, LOG, True),
        ({"namespaces": ["other"]}, LOG, False),
        ({"namespaces": ["shop"]}, LOG, True),
    ],
)
def test_a_resource_rule_matches_by_every_field(
    changes: dict[str, Any], attributes: Attributes, is_matched: bool
) -> None:
    assert (level_of(JANE, attributes, schema("mine", [rule(**changes)])) == "system") is is_matched


@pytest.mark.parametrize(
    ("urls", "is_matched"),
    [(["*"], True), (["/openapi/v2"], True), (["/openapi/*"], True), (["/openapi"], True), (["/open*"], False)],
)
def test_a_path_rule_matches_whole_segments(urls: list[str], is_matched: bool) -> None:
    rules = [{**rule(), "resourceRules": [], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": urls}]}]
    assert (level_of(JANE, PATH, schema("mine", rules)) == "system") is is_matched


@pytest.mark.parametrize(
    ("subject", "is_matched"),
    [
        ({"kind": "User", "user": {"name": "system:serviceaccount:shop:a"}}, True),
        ({"kind": "User", "user": {"name": "b"}}, False),
        ({"kind": "Group", "group": {"name": "*"}}, True),
        ({"kind": "Group", "group": {"name": "system:serviceaccounts:shop"}}, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "*"}}, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "a"}}, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "b"}}, False),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "sho", "name": "*"}}, False),
    ],
)
def test_a_rule_matches_its_subjects(subject: Object, is_matched: bool) -> None:
    account = service_account_user("shop", "a", "1")
    added = schema("mine", [{**rule(), "subjects": [subject]}])
    assert (level_of(account, PODS, added) == "system") is is_matched


def test_the_lowest_precedence_then_the_name_decides() -> None:
    first, second = schema("b", [rule()], level="controllers", precedence=40), schema("a", [rule()])
    assert level_of(JANE, PODS, second, first) == "controllers"
    assert level_of(JANE, PODS, second, schema("0", [rule()], level="controllers")) == "controllers"


def test_a_schema_without_its_level_is_left_out_and_mandatory_objects_are_added() -> None:
    assert level_of(JANE, PODS, schema("mine", [rule()], level="missing")) == "workloads"
    bare = to_configuration([], [])
    assert list(bare.levels) == ["exempt", "catch-all"]
    assert bare.classify(JANE, PODS).name == "catch-all"


@pytest.mark.parametrize(("method", "flow"), [("ByUser", "jane"), ("ByNamespace", "shop"), ("", "")])
def test_a_schema_distinguishes_its_flows(method: str, flow: str) -> None:
    found = to_configuration([schema("mine", [rule()], method=method)], LEVELS).classify(JANE, LOG)
    assert found.flow_of(JANE, LOG) == flow
