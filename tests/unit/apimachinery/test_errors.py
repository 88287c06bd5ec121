"""The error tree: conversion between API errors and Statuses, and which errors are retryable."""

import pytest

from federation.apimachinery import errors
from federation.apimachinery.errors import ApiError, FederationError


def _api_errors() -> list[type[ApiError]]:
    """Return those of the module: others have them as their reasons, and do not travel."""
    found = (kind for kind in ApiError.__subclasses__() if kind.__module__ == errors.__name__)
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", _api_errors())
def test_an_error_survives_the_conversion_to_a_status_and_back(kind: type[ApiError]) -> None:
    error = kind("it is so", details={"name": "web", "kind": "deployments"})
    status = error.to_status()

    assert status["kind"] == "Status"
    assert status["status"] == "Failure"
    assert (status["code"], status["reason"], status["message"]) == (kind.code, kind.reason, "it is so")

    again = errors.from_status(status, kind.code)
    assert type(again) is kind
    assert again.details == error.details
    assert again.message == "it is so"


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ({"reason": "NotFound"}, 404, errors.NotFound),
        ({}, 410, errors.Expired),
        ({"reason": "SomethingNew"}, 503, errors.ServiceUnavailable),
        ({}, 418, ApiError),
    ],
    ids=["by reason", "by code", "unknown reason", "unknown code"],
)
def test_an_answer_of_any_server_becomes_the_nearest_error(
    status: dict[str, str], code: int, expected: type[ApiError]
) -> None:
    error = errors.from_status(status, code)
    assert type(error) is expected
    assert error.code == code


def test_reason_and_message_of_a_server_are_kept() -> None:
    error = errors.from_status({"reason": "SomethingNew", "message": "hm"}, 503)
    assert (error.reason, error.message) == ("SomethingNew", "hm")
    assert "418" in errors.from_status({}, 418).message


def test_field_errors_are_listed_as_kubernetes_lists_them() -> None:
    one = errors.cause("FieldValueInvalid", "Invalid value: -1", "spec.replicas")
    two = errors.cause("FieldValueRequired", "Required value", "spec.selector")

    single = errors.invalid("Deployment", "apps", "web", [one])
    both = errors.invalid("Service", "", "web", [one, two])

    assert single.message == 'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1'
    assert both.message == (
        'Service "web" is invalid: [spec.replicas: Invalid value: -1, spec.selector: Required value]'
    )
    assert both.details["causes"] == [one, two]


def test_only_errors_that_can_pass_by_themselves_are_retryable() -> None:
    def every(kind: type[FederationError]) -> set[type[FederationError]]:
        return {kind}.union(*(every(below) for below in kind.__subclasses__() if "federation" in below.__module__))

    retryable = {
        kind.__name__ for kind in every(FederationError) if kind.retryable and kind.__module__ == errors.__name__
    }
    assert retryable == {
        "TooManyRequests",
        "InternalError",
        "ServiceUnavailable",
        "Timeout",
        "StoreFull",
        "StoreUnavailable",
        "ClusterUnreachable",
        "RequestTimeout",
    }
