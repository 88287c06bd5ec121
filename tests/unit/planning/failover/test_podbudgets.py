"""PodDisruptionBudgets over all clusters."""

from typing import Any

import pytest

from federation.planning.failover.podbudgets import unavailable_max

WEB = {"kind": "Deployment", "spec": {"template": {"metadata": {"labels": {"app": "web"}}}}}
SELECTOR = {"matchLabels": {"app": "web"}}


def _budget(**spec: Any) -> dict[str, Any]:
    return {"spec": {"selector": SELECTOR, **spec}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxUnavailable": 2}, 2),
        ({"maxUnavailable": 20}, 10),
        ({"maxUnavailable": "25%"}, 3),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 8}, 2),
        ({"minAvailable": 12}, 0),
        ({"minAvailable": "75%"}, 2),
        ({}, 9),
        ({"maxUnavailable": "many"}, 0),
        ({"maxUnavailable": "many%"}, 0),
        ({"minAvailable": True}, 0),
    ],
)
def test_the_limit_of_a_budget(spec: dict[str, Any], expected: int) -> None:
    assert unavailable_max([_budget(**spec)], WEB, 10) == expected


def test_the_tightest_of_the_budgets_that_select_the_pods_counts() -> None:
    other = {"spec": {"selector": {"matchLabels": {"app": "api"}}, "maxUnavailable": 0}}
    assert unavailable_max([_budget(maxUnavailable=3), _budget(maxUnavailable=1), other], WEB, 10) == 1
    assert unavailable_max([other], WEB, 10) is None
    assert unavailable_max([], WEB, 10) is None
    assert unavailable_max([{"spec": {"selector": {}, "maxUnavailable": 4}}], WEB, 10) == 4


@pytest.mark.parametrize(
    "budget",
    [
        {},
        {"spec": None},
        {"spec": {"maxUnavailable": 0}},
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}, "maxUnavailable": 0}},
    ],
)
def test_a_budget_without_a_usable_selector_selects_nothing(budget: dict[str, Any]) -> None:
    assert unavailable_max([budget], WEB, 10) is None


def test_a_pod_has_labels_of_its_own() -> None:
    pod = {"kind": "Pod", "metadata": {"labels": {"app": "web"}}}
    assert unavailable_max([_budget(maxUnavailable=0)], pod, 1) == 0
