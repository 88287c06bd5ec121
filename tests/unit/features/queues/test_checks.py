"""What the answers of admission checks mean, whatever a service sends."""

import orjson
import pytest

from federation.features.queues.rules.checks import READY_S, Answer, Check, compile_checks, request_body, to_answer
from federation.features.queues.rules.facts import Admitted

[CHECK] = compile_checks({"admissionChecks": [{"name": "budget", "url": "https://budget.example"}]})
NOW = 1_000.0


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        pytest.param(200, b'{"status": "Ready"}', Answer(True, NOW + READY_S), id="ready"),
        pytest.param(
            200,
            b'{"status": "Retry", "message": "no money", "retryAfterSeconds": 60}',
            Answer(False, NOW + 60, "admission check budget holds it: no money"),
            id="retry",
        ),
        pytest.param(
            200, b'{"status": "Rejected"}', Answer(False, NOW + 3600, "admission check budget rejected it"), id="rejected"
        ),
        pytest.param(503, b'{"status": "Ready"}', Answer(False, NOW + 30, "admission check budget: down"), id="no success"),
        pytest.param(0, b"", Answer(False, NOW + 30, "admission check budget: down"), id="no answer"),
        pytest.param(
            200, b'{"status": "Retry", "retryAfterSeconds": -1}', Answer(False, NOW + 5, "admission check budget holds it"),
            id="a time below the least",
        ),
        pytest.param(
            200, b'{"status": "Retry", "retryAfterSeconds": 1e300}',
            Answer(False, NOW + 3600, "admission check budget holds it"), id="a time above the most",
        ),
        *(
            pytest.param(
                200, body,
                Answer(False, NOW + 30, "admission check budget: its answer has no status Ready, Retry or Rejected"),
                id=name,
            )
            for name, body in {
                "no JSON": b"<html>", "another status": b'{"status": "ready"}', "a list": b"[]", "nothing": b"{}",
                "depth": b"[" * 100_000, "no text": b'{"status": "Ready", "message": "\xff"}',
            }.items()
        ),
    ],
)  # fmt: skip
def test_an_answer_means(status: int, body: bytes, expected: Answer) -> None:
    assert to_answer(CHECK, status, body, "down", NOW) == expected


def test_a_long_message_is_cut() -> None:
    answer = to_answer(CHECK, 200, orjson.dumps({"status": "Retry", "message": "x" * 100_000}), "", NOW)
    assert len(answer.because) < 300


def test_a_request_names_the_job_and_what_it_would_get() -> None:
    admitted = Admitted({("any", "cpu"): 1500, ("any", "nvidia.com/gpu"): 2}, frozenset(("two", "one")))
    assert orjson.loads(request_body(CHECK, {"job": {"name": "train"}}, admitted)) == {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "AdmissionCheckRequest",
        "check": "budget",
        "job": {"name": "train"},
        "flavors": {"any": {"cpu": "1500m", "nvidia.com/gpu": "2"}},
        "clusters": ["one", "two"],
    }


def test_a_certificate_that_is_none_is_a_fault_of_the_queue() -> None:
    with pytest.raises(ValueError, match="base64"):
        compile_checks({"admissionChecks": [{"name": "a", "url": "https://a", "caBundle": "%"}]})
    assert isinstance(CHECK, Check)
