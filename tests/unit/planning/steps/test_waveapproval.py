"""Approvals of template revisions: without a readable record nothing is approved."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.steps.waveapproval import approved_revisions, failure_of, to_annotation, to_failure


def a_federated(**annotations: str) -> dict[str, Any]:
    known = {"rollout": names.ROLLOUT, "override": names.OVERRIDE_ROLLOUT, "approved": names.APPROVED_REVISIONS}
    return {"metadata": {"annotations": {known[key]: value for key, value in annotations.items()}}}


def test_an_object_without_waves_needs_no_approval() -> None:
    assert approved_revisions({}) is None
    assert approved_revisions({"metadata": {"annotations": None}}) is None
    assert approved_revisions(a_federated(approved='{"east": "v1"}')) is None


@pytest.mark.parametrize("source", ["rollout", "override"])
def test_waves_of_any_policy_need_approvals(source: str) -> None:
    assert approved_revisions(a_federated(**{source: "{}"})) == {}
    assert approved_revisions(a_federated(**{source: "{}", "approved": to_annotation({"east": "v1"})})) == {
        "east": "v1"
    }


@pytest.mark.parametrize("text", ["{", "[]", "null", '"v1"'])
def test_a_malformed_record_approves_nothing(text: str) -> None:
    assert approved_revisions(a_federated(rollout="{}", approved=text)) == {}


def test_a_record_with_other_values_than_texts_approves_nothing() -> None:
    assert approved_revisions(a_federated(rollout="{}", approved='{"east": 1, "west": "v1"}')) == {}


def test_a_failure_is_about_the_template_that_failed_and_about_no_other() -> None:
    def with_image(image: str) -> dict[str, Any]:
        metadata = {"creationTimestamp": None}
        return {"spec": {"template": {"metadata": metadata, "spec": {"containers": [{"image": image}]}}}}

    template = {"metadata": {}, "spec": {"containers": [{"image": "bad"}]}}
    federated = {"spec": {"template": {"spec": {"template": template}}}}
    assert to_failure(federated, "") is None
    text = to_failure(federated, "the gate of wave canary did not hold")
    failed = {"metadata": {"annotations": {names.ROLLOUT_FAILURE: text}}}
    assert failure_of(failed, with_image("bad")) == "the gate of wave canary did not hold"
    # The user has taken the change back; the record is rewritten later.
    assert failure_of(failed, with_image("good")) == ""
    assert failure_of({}, with_image("bad")) == ""
    assert failure_of({"metadata": {"annotations": {names.ROLLOUT_FAILURE: "plain"}}}, with_image("bad")) == ""


def test_a_failure_without_a_reason_is_none() -> None:
    federated: dict[str, Any] = {"spec": {"template": {"spec": {"template": {}}}}, "metadata": {}}
    text = to_failure(federated, "late")
    assert text is not None
    for found, reason in ((text, "late"), (text.replace("late", ""), ""), (text.replace("reason", "other"), "")):
        federated["metadata"]["annotations"] = {names.ROLLOUT_FAILURE: found}
        assert failure_of(federated, federated["spec"]["template"]) == reason
