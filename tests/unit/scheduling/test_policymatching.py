"""Which of several policies that select an object applies to it."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import PolicyRef, compile_policy

SELECTORS = [{"apiVersion": "apps/v1", "kind": "Deployment"}]


def an_index(*policies: tuple[str, dict[str, Any]], namespace: str = "shop") -> PolicyIndex:
    index = PolicyIndex()
    for name, spec in policies:
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        full = {"schedulingMode": "Duplicate", "resourceSelectors": SELECTORS, **spec}
        index.put(compile_policy({"metadata": metadata, "spec": full}))
    return index


def a_federated(holder: str = "", **labels: str) -> dict[str, Any]:
    triggers = {names.SCHEDULING_TRIGGERS: orjson.dumps({"policyName": holder}).decode()} if holder else {}
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    return {
        "metadata": {"name": "web", "namespace": "shop", "annotations": triggers, "labels": labels},
        "spec": {"template": template},
    }


NEVER = {"preemption": "Never"}


@pytest.mark.parametrize(
    ("policies", "holder", "expected"),
    [
        pytest.param([("b", {}), ("a", {})], "", "a", id="first by name"),
        pytest.param([("a", {}), ("b", {"priority": 1})], "", "b", id="highest priority"),
        pytest.param([("a", {"priority": -1}), ("b", {})], "", "b", id="below the default"),
        pytest.param([("a", {}), ("b", {})], "b", "a", id="takes what another placed"),
        pytest.param([("a", NEVER), ("b", {})], "b", "b", id="leaves what another placed"),
        pytest.param([("a", NEVER), ("b", {})], "", "a", id="takes what nobody placed"),
        pytest.param([("a", NEVER), ("b", {})], "gone", "a", id="takes what a deleted one placed"),
        pytest.param([("a", NEVER), ("b", NEVER)], "a", "a", id="keeps its own"),
        pytest.param(
            [("a", {**NEVER, "priority": 2}), ("b", {"priority": 1}), ("c", {})], "c", "b", id="one that preempts"
        ),
        pytest.param([("a", {**NEVER, "priority": 2}), ("b", {}), ("c", {})], "b", "b", id="not one below the holder"),
    ],
)
def test_the_policy_of_an_object(policies: Any, holder: str, expected: str) -> None:
    assert an_index(*policies).match(a_federated(holder)) == PolicyRef("shop", expected)


def test_a_label_decides_before_any_priority() -> None:
    index = an_index(("a", {"priority": 9}), ("b", {}))
    federated = a_federated("a", **{names.PROPAGATION_POLICY_LABEL: "b"})
    assert index.match(federated) == PolicyRef("shop", "b")


def test_a_namespace_decides_before_the_priority_of_cluster_wide_policies() -> None:
    index = an_index(("a", {"priority": 9}), namespace="")
    assert index.match(a_federated()) == PolicyRef("", "a")
    own = an_index(("own", {}))
    policy = own.get(PolicyRef("shop", "own"))
    assert policy is not None
    index.put(policy)
    assert index.match(a_federated("a")) == PolicyRef("shop", "own")


def test_a_changed_priority_changes_the_order() -> None:
    index = an_index(("a", {}), ("b", {}))
    index.put(an_index(("b", {"priority": 1})).get(PolicyRef("shop", "b")))  # type: ignore[arg-type]
    assert index.match(a_federated("a")) == PolicyRef("shop", "b")
    index.remove(PolicyRef("shop", "b"))
    assert index.match(a_federated("b")) == PolicyRef("shop", "a")


def test_priorities_are_no_content_that_places_again() -> None:
    specs: list[dict[str, Any]] = [{}, {"priority": 3, "preemption": "Never"}]
    hashes = {
        compile_policy({"metadata": {"name": "a"}, "spec": {"schedulingMode": "Divide", **spec}}).content_hash
        for spec in specs
    }
    assert len(hashes) == 1
