from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import GroupKind
from federation.planning.overrides import entries, policies, policymatching
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.patches import ClusterPatches

TEMPLATE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}},
}
CLUSTERS = [policies.Cluster("m1", {"region": "eu"}), policies.Cluster("m2", {"region": "us"})]


def a_policy(name: str = "p", namespace: str = "d", *, rules: Any = (), selectors: Any = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"overrideRules": list(rules)}
    if selectors is not None:
        spec["resourceSelectors"] = selectors
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": "OverridePolicy" if namespace else "ClusterOverridePolicy", "metadata": metadata, "spec": spec}


def a_rule(path: str, value: Any, **target: Any) -> dict[str, Any]:
    rule: dict[str, Any] = {"overriders": {"jsonpatch": [{"path": path, "value": value}]}}
    return rule | ({"targetClusters": target} if target else {})


def compute(*given: dict[str, Any]) -> ClusterPatches:
    return policies.compute_overrides(TEMPLATE, [policies.compile_policy(policy) for policy in given], CLUSTERS)


def test_rules_apply_where_their_target_matches() -> None:
    result = compute(a_policy(rules=[a_rule("/spec/x", 1), a_rule("/spec/y", 2, clusterSelector={"region": "us"})]))
    assert result == {
        "m1": [{"path": "/spec/x", "value": 1}],
        "m2": [{"path": "/spec/x", "value": 1}, {"path": "/spec/y", "value": 2}],
    }


def test_published_examples_with_capital_cluster_names_match() -> None:
    assert list(compute(a_policy(rules=[a_rule("/spec/x", 1, clusters=["M1"])]))) == ["m1"]


def test_the_second_policy_sees_the_result_of_the_first() -> None:
    first = a_policy("a", "", rules=[a_rule("/spec/template/spec/containers/0/image", "registry.example/nginx:1")])
    second = a_policy(rules=[{"overriders": {"image": [{"operations": [{"imageComponent": "Tag", "value": "2"}]}]}}])
    assert compute(first, second)["m1"][-1]["value"] == "registry.example/nginx:2"


def test_the_template_stays_as_it_was() -> None:
    compute(a_policy(rules=[a_rule("/metadata/labels/x", "1")]))
    assert TEMPLATE["metadata"]["labels"] == {"app": "web"}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {"overriders": {"image": [{"operations": [{"imageComponent": "Tag", "value": "a b"}]}]}},
            r'^OverridePolicy "d/p": spec\.overrideRules\[0\]\.overriders\.image\[0\]\.operations\[0\]: the value is not a valid',
        ),
        (
            a_rule("/missing/x/y", 1),
            r"spec\.overrideRules\[0\]\.overriders\.jsonpatch\[0\] \(/missing/x/y\): .*missing key: missing; correct the path",
        ),
        (a_rule("/spec/x", 1, clusterSelector={"": "x"}), r"spec\.overrideRules\[0\]\..*label key"),
        (
            a_rule("/x", 1, clusterAffinity=[{"matchFields": [{"key": "uid", "operator": "In", "values": ["1"]}]}]),
            "only metadata.name is",
        ),
        ({"overriders": {"command": [{"containerName": "c", "value": ["x"]}]}}, "unsupported operator"),
    ],
)
def test_an_error_names_its_position(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(OverrideError, match=message):
        compute(a_policy(rules=[rule]))


def bound(*given: dict[str, Any]) -> policymatching.Bindings:
    result = policymatching.Bindings()
    for policy in given:
        assert result.put(policy) == ""
    return result


def a_subject(namespace: str = "d", **labels: str) -> policymatching.Subject:
    return policymatching.Subject(
        GroupKind("apps", "Deployment"),
        namespace,
        "web",
        {key.replace("_", "-"): value for key, value in labels.items()},
    )


def displays(found: list[policies.Policy]) -> list[str]:
    return [policy.display for policy in found]


SELECT_WEB = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}]


def test_selectors_bind_every_policy_that_selects_cluster_wide_ones_first() -> None:
    held = bound(
        a_policy("z", selectors=SELECT_WEB),
        a_policy("b", selectors=SELECT_WEB),
        a_policy("other", "elsewhere", selectors=SELECT_WEB),
        a_policy("wide", "", selectors=SELECT_WEB),
        a_policy("unselecting"),
    )
    assert displays(held.resolve(a_subject(app="web"))) == [
        'ClusterOverridePolicy "wide"',
        'OverridePolicy "d/b"',
        'OverridePolicy "d/z"',
    ]
    assert held.resolve(a_subject(app="db")) == []
    assert not held.may_apply(a_subject(app="db"))
    assert displays(held.resolve(a_subject("", app="web"))) == ['ClusterOverridePolicy "wide"']


def test_a_label_takes_precedence_over_selectors_of_its_level() -> None:
    held = bound(a_policy("by-label"), a_policy("by-selector", selectors=SELECT_WEB))
    subject = a_subject(app="web", **{names.OVERRIDE_POLICY_LABEL: "by-label"})
    assert displays(held.resolve(subject)) == ['OverridePolicy "d/by-label"']


def test_a_label_that_names_no_policy_is_an_error_and_still_may_apply() -> None:
    subject = a_subject(**{names.OVERRIDE_POLICY_LABEL: "missing"})
    with pytest.raises(policymatching.PolicyNotFoundError, match='OverridePolicy "d/missing" does not exist'):
        bound().resolve(subject)
    assert bound().may_apply(subject)
    with pytest.raises(OverrideError, match="is empty"):
        bound().resolve(a_subject(**{names.CLUSTER_OVERRIDE_POLICY_LABEL: ""}))


def test_updates_and_deletions_of_policies_apply() -> None:
    held = bound(a_policy("p", selectors=SELECT_WEB))
    held.put(a_policy("p", selectors=[]))
    assert not held.may_apply(a_subject(app="web"))
    held.put(a_policy("p", selectors=SELECT_WEB))
    held.drop(a_policy("p"))
    assert not held.may_apply(a_subject(app="web"))


def test_malformed_selectors_are_reported_and_select_nothing() -> None:
    held = policymatching.Bindings()
    broken = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"!": "x"}}}]
    assert "spec.resourceSelectors" in held.put(a_policy("p", selectors=broken))
    assert not held.may_apply(a_subject(app="web"))
    assert displays(held.resolve(a_subject(**{names.OVERRIDE_POLICY_LABEL: "p"}))) == ['OverridePolicy "d/p"']


def test_source_and_federated_object_are_the_same_subject() -> None:
    source = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "d", "name": "web", "labels": {"app": "web", names.OVERRIDE_POLICY_LABEL: "p"}},
    }
    federated = {
        "metadata": {"namespace": "d", "name": "web-deployments.apps", "labels": {names.OVERRIDE_POLICY_LABEL: "p"}},
        "spec": {"template": TEMPLATE},
    }
    assert policymatching.subject_of_source(source) == policymatching.subject_of_federated(federated)
    assert policymatching.selected_types([a_policy(selectors=SELECT_WEB), None]) == {GroupKind("apps", "Deployment")}


ME = names.OVERRIDE_CONTROLLER
STAGES = ((names.GLOBAL_SCHEDULER,), (ME,))


def a_federated(pending: str = "[]", overrides: Any = None, **annotations: str) -> dict[str, Any]:
    held = {names.PENDING_CONTROLLERS: pending, **annotations}
    spec = {"template": TEMPLATE} | ({"overrides": overrides} if overrides is not None else {})
    return {"metadata": {"name": "f", "resourceVersion": "5", "annotations": held}, "spec": spec}


def test_the_first_overrides_are_stored_beside_those_of_others() -> None:
    federated = a_federated(f'[["{ME}"]]', [{"controller": "other", "clusters": []}])
    patch = entries.plan_overrides(federated, ME, {"m2": [{"path": "/x"}], "m1": [{"path": "/y"}]}, STAGES)
    assert patch == {
        "metadata": {"resourceVersion": "5", "annotations": {names.PENDING_CONTROLLERS: "[]"}},
        "spec": {
            "overrides": [
                {"controller": "other", "clusters": []},
                {
                    "controller": ME,
                    "clusters": [
                        {"cluster": "m1", "patches": [{"path": "/y"}]},
                        {"cluster": "m2", "patches": [{"path": "/x"}]},
                    ],
                },
            ]
        },
    }


def test_unchanged_overrides_only_advance_the_pipeline() -> None:
    entry = {"controller": ME, "clusters": [{"cluster": "m1", "patches": [{"path": "/x", "value": None}]}]}
    wanted: dict[str, Any] = {"m1": [{"path": "/x"}]}
    assert entries.plan_overrides(a_federated("[]", [entry]), ME, wanted, STAGES) is None
    assert entries.plan_overrides(a_federated(f'[["{ME}"]]', [entry]), ME, wanted, STAGES) == {
        "metadata": {"resourceVersion": "5", "annotations": {names.PENDING_CONTROLLERS: "[]"}}
    }


def test_overrides_without_a_policy_are_removed() -> None:
    entry = {"controller": ME, "clusters": [{"cluster": "m1", "patches": [{"path": "/x"}]}]}
    patch = entries.plan_overrides(a_federated("[]", [entry]), ME, {}, STAGES)
    assert patch == {"metadata": {"resourceVersion": "5"}, "spec": {"overrides": []}}


def test_a_controller_with_overrides_is_no_longer_idle() -> None:
    federated = a_federated("[]", **{names.IDLE_CONTROLLERS: ME})
    patch = entries.plan_overrides(federated, ME, {"m1": [{"path": "/x"}]}, STAGES)
    assert patch is not None
    assert patch["metadata"]["annotations"] == {names.IDLE_CONTROLLERS: None}


def test_the_override_controller_is_idle_without_policies_and_stored_overrides() -> None:
    source = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "d", "name": "web"}}
    idle = (names.OVERRIDE_CONTROLLER,)

    def stored(controller: str) -> dict[str, Any]:
        return {"spec": {"overrides": [{"controller": controller}]}}

    assert policymatching.idle_controllers(bound(), source) == idle
    assert policymatching.idle_controllers(bound(), source, stored(names.GLOBAL_SCHEDULER)) == idle
    assert policymatching.idle_controllers(bound(), source, stored(names.OVERRIDE_CONTROLLER)) == ()
    selects = a_policy("a", selectors=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
    assert policymatching.idle_controllers(bound(selects), source) == ()
