"""The paths by which objects belong to workloads, and those that a FederatedTypeConfig adds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.apimachinery.resources import GroupKind, Resource
from federation.planning.followers.ties import (
    TIES,
    Mention,
    Relation,
    Selection,
    TieError,
    links_of,
    may_be_taken_along,
    tied_kinds,
    ties_of,
    values_at,
)

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "applications.md"
GADGET = Resource("example.com", "v1", "Gadget", "gadgets")
PLAIN = FederatedType("gadgets.example.com", GADGET, ())


def gadget_type(*entries: Any) -> FederatedType:
    return replace(PLAIN, application_paths=orjson.dumps(list(entries)).decode())


def mentions(kind: str, obj: dict[str, Any]) -> list[tuple[str, str]]:
    ties = next(ties for known, ties in TIES.items() if known.kind == kind)
    return [(link.kind, link.name) for link in links_of({"kind": kind, **obj}, ties) if isinstance(link, Mention)]


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (
            "Ingress",
            {
                "spec": {
                    "rules": [{"http": {"paths": [{"backend": {"service": {"name": "web"}}}, {"backend": {}}]}}, {}],
                    "defaultBackend": {"service": {"name": "other"}},
                }
            },
            [("Service", "web"), ("Service", "other")],
        ),
        (
            "HTTPRoute",
            {"spec": {"rules": [{"backendRefs": [{"name": "web"}, {"kind": "Pool", "group": "x", "name": "p"}]}]}},
            [("Service", "web"), ("Pool", "p")],
        ),
        ("VirtualService", {"spec": {"http": [{"route": [{"destination": {"host": "web.shop.svc"}}]}]}}, [("Service", "web")]),
        ("HorizontalPodAutoscaler", {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}}}, [("StatefulSet", "db")]),
        ("ScaledObject", {"spec": {"scaleTargetRef": {"name": "web"}}}, [("Deployment", "web")]),
        ("EndpointSlice", {"metadata": {"labels": {"kubernetes.io/service-name": "web"}}}, [("Service", "web")]),
        ("RoleBinding", {"subjects": [{"kind": "User", "name": "eve"}, {"kind": "ServiceAccount", "name": "runner"}]}, [("User", "eve"), ("ServiceAccount", "runner")]),
        ("Certificate", {"spec": {"secretName": "tls"}}, [("Secret", "tls")]),
        ("ScaledObject", {"spec": {"scaleTargetRef": {"name": 7}}}, []),
        ("Certificate", {"spec": {"secretName": ""}}, []),
        ("Certificate", {"spec": []}, []),
    ],
)  # fmt: skip
def test_objects_are_named_by_their_paths(kind: str, obj: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert mentions(kind, obj) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "matched", "missed"),
    [
        ("Service", {"selector": {"a": "web"}}, {"a": "web", "b": "1"}, {"a": "api"}),
        ("PodDisruptionBudget", {"selector": {"matchLabels": {"a": "web"}}}, {"a": "web"}, {}),
        ("NetworkPolicy", {"podSelector": {}}, {}, None),
        ("PodMonitor", {"selector": {"a": "web"}}, {"a": "web"}, {}),
    ],
)
def test_pods_are_selected_by_labels(
    kind: str, spec: dict[str, Any], matched: dict[str, str], missed: dict[str, str] | None
) -> None:
    [link] = links_of({"kind": kind, "spec": spec}, next(ties for known, ties in TIES.items() if known.kind == kind))
    assert isinstance(link, Selection)
    assert link.selector.matches(matched)
    assert missed is None or not link.selector.matches(missed)


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        ("Service", {}),
        ("Service", None),
        ("Service", "web"),
        ("PodDisruptionBudget", {"matchExpressions": [{"key": "a", "operator": "Maybe"}]}),
        ("PodDisruptionBudget", {"matchExpressions": ["a"]}),
        ("PodDisruptionBudget", {"matchLabels": ["a"]}),
        ("Service", {"a": 1}),
    ],
)
def test_selectors_that_select_nothing_tie_nothing(kind: str, selector: Any) -> None:
    ties = next(ties for known, ties in TIES.items() if known.kind == kind)
    assert not list(links_of({"kind": kind, "spec": {"selector": selector}}, ties))


def test_a_type_adds_the_paths_of_its_kind() -> None:
    added = gadget_type(
        {"path": "spec.target", "relation": "scales"},
        {"path": "spec.pods", "selects": "Pod", "relation": "protects"},
        {"path": "spec.account", "kind": "ServiceAccount"},
    )
    obj = {"kind": "Gadget", "spec": {"target": "web", "pods": {"a": "web"}, "account": "runner"}}
    first, second, third = links_of(obj, ties_of(GADGET.group_kind, added))
    assert first == Mention(Relation.SCALES, "apps", "Deployment", "web")
    assert isinstance(second, Selection)
    assert second.relation is Relation.PROTECTS
    assert second.selector.matches({"a": "web"})
    assert third == Mention(Relation.TARGETS, "", "ServiceAccount", "runner")
    assert may_be_taken_along(GADGET.group_kind, added)
    assert GADGET.group_kind in tied_kinds([added, PLAIN])
    assert GADGET.group_kind not in tied_kinds([PLAIN])
    assert not may_be_taken_along(GADGET.group_kind, PLAIN)


def test_the_annotation_of_scale_targets_is_a_tie_for_other_kinds() -> None:
    scaler = replace(PLAIN, scale_target_ref_path=("spec", "ref"))
    [link] = links_of({"spec": {"ref": {"kind": "StatefulSet", "name": "db"}}}, ties_of(GADGET.group_kind, scaler))
    assert link == Mention(Relation.SCALES, "", "StatefulSet", "db")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON"),
        ("{}", "write a list such as"),
        ("[1]", "item 0: path: give the dot path of a field"),
        ('[{"path": "."}]', "item 0: path"),
        ('[{"path": "spec.a", "relation": "eats"}]', "item 0: relation: 'eats' is none of exposes, scales"),
        ('[{"path": "spec.a", "selects": "Node"}]', "item 0: selects: 'Node' is neither Pod nor Service"),
        ('[{"path": "spec.a", "kind": ""}]', "item 0: kind: give a kind"),
    ],
)
def test_a_wrong_path_is_named_and_ties_nothing(text: str, message: str) -> None:
    wrong = replace(PLAIN, application_paths=text)
    with pytest.raises(TieError, match="application-paths") as raised:
        ties_of(GADGET.group_kind, wrong)
    assert message in str(raised.value)
    assert not may_be_taken_along(GADGET.group_kind, wrong)


def test_rights_and_objects_with_controllers_of_their_own_are_not_taken_along() -> None:
    assert may_be_taken_along(GroupKind("", "Service"), None)
    for group, kind in (
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("apps.kruise.io", "WorkloadSpread"),
    ):
        assert not may_be_taken_along(GroupKind(group, kind), None)


def test_the_annotation_is_read_from_the_configuration() -> None:
    [config] = [each for each in default_type_configs() if each["metadata"]["name"] == "ingresses.networking.k8s.io"]
    config["metadata"]["annotations"] = {names.APPLICATION_PATHS: '[{"path": "spec.x"}]'}
    assert len(ties_of(GroupKind("networking.k8s.io", "Ingress"), from_config(config))) == 3


def test_lists_are_read_only_where_the_path_says_so() -> None:
    assert list(values_at({"a": [{"b": 1}, {"b": None}, 3]}, ("a[]", "b"))) == [1]
    assert list(values_at({"a": {"b": 1}}, ("a[]", "b"))) == []
    assert list(values_at({"a": [{"b": 1}]}, ("a", "b"))) == []


def test_the_reference_lists_every_kind_and_path_of_the_table() -> None:
    text, _, _ = PAGE.read_text().partition("## Further kinds")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    for kind, ties in TIES.items():
        [(paths, relation)] = [row[2:4] for row in rows if kind.kind in row[1].replace(",", " ").split()]
        for tie in ties:
            path = "kubernetes.io/service-name" if kind.kind == "EndpointSlice" else ".".join(tie.path)
            assert path in paths, kind
            assert relation.strip() == tie.relation, kind
