"""A decision names the changes that are new since the last one, and no others."""

from typing import Any

import pytest
from tests.support.manifests import a_policy

from federation.api import names
from federation.scheduling.changenames import causing_changes, changes_annotation
from federation.scheduling.names import DECIDED_CHANGES
from federation.scheduling.policyspec import Policy, compile_policy

POLICY = {"name": "p1", "of": "PropagationPolicy default/divide"}
OBJECT = {"name": "o1", "of": "Deployment web"}


def policy(change: str) -> Policy:
    made = a_policy({"east": 1})
    made["metadata"]["annotations"] = {names.CHANGE: change} if change else {}
    return compile_policy(made)


def federated(change: str, recorded: str = "") -> dict[str, Any]:
    annotations = {names.CHANGE: change} if change else {}
    annotations |= {DECIDED_CHANGES: recorded} if recorded else {}
    template = {"kind": "Deployment", "metadata": {"name": "web"}}
    return {"metadata": {"annotations": annotations}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("obj", "of_policy", "changed", "found"),
    [
        (federated("o1"), "p1", (), [OBJECT, POLICY]),
        (federated("o1", '{"object":"o1"}'), "p1", ("policyContentHash",), [POLICY]),
        (federated("o1", '{"object":"o0","policy":"p1"}'), "p1", ("replicaCount",), [OBJECT]),
        (federated("", '{"policy":"p0"}'), "p1", ("clusterLabelsHashes",), []),
        (federated("o1", '{"object":"o1","policy":"p1"}'), "p1", ("clusterTaintsHashes",), []),
        (federated("o1", "broken"), "", ("replicaCount",), [OBJECT]),
        (federated(""), "", (), []),
    ],
)
def test_new_changes_are_named(
    obj: dict[str, Any], of_policy: str, changed: tuple[str, ...], found: list[dict[str, str]]
) -> None:
    assert causing_changes(obj, policy(of_policy), changed) == found


def test_names_are_recorded_with_the_decision_and_removed_without() -> None:
    assert changes_annotation(federated("o1"), policy("p1")) == {DECIDED_CHANGES: '{"object":"o1","policy":"p1"}'}
    assert changes_annotation(federated(""), policy("")) == {}
    assert changes_annotation(federated("", '{"object":"o1"}'), policy("")) == {DECIDED_CHANGES: None}


def test_a_long_name_is_cut() -> None:
    (found,) = causing_changes(federated("x" * 10_000), policy(""), ())
    assert len(found["name"]) == 200
