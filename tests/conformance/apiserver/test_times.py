"""Conformance area "times": Lease and Event return times in the format of their types."""

import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.support.rest import Api, refused


def test_a_lease_keeps_microseconds(api: Api) -> None:
    sent = {"acquireTime": "2024-01-02T03:04:05.000000Z", "renewTime": "2024-01-02T05:04:05.123456+02:00"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": sent}
    spec = api.create("leases", lease)["spec"]
    assert spec == {"acquireTime": "2024-01-02T03:04:05.000000Z", "renewTime": "2024-01-02T03:04:05.123456Z"}
    assert api.get("leases", "l")["spec"] == spec


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2024-01-02T03:04:05Z", 'cannot parse "Z" as ".000000"'),
        ("2024-01-02T03:04:05.123Z", 'cannot parse ".123Z" as ".000000"'),
        ("2024-01-02T03:04:05.1234567+02:00", 'cannot parse "7+02:00" as "Z07:00"'),
        ("soon", 'cannot parse "soon" as "2006"'),
        ("", 'cannot parse "" as "2006"'),
    ],
)
def test_a_precise_time_has_six_digits_after_the_second(api: Api, text: str, problem: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    expected = f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": {problem}'
    with refused(400, "BadRequest", f'Lease in version "v1" cannot be handled as a Lease: {expected}'):
        api.create("leases", {**lease, "spec": {"renewTime": text}})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2024-01-02T03:04:05.5", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2024-01-02T25:04:05Z", ": hour out of range"),
        ("2024-13-02T25:04:05Z", ": month out of range"),
    ],
)
def test_a_text_that_is_no_time_is_refused(api: Api, text: str, problem: str) -> None:
    with refused(400, "BadRequest", f'parsing time "{text}"{problem}'):
        api.create("configmaps", a_config_map(creationTimestamp=text))


def test_an_event_has_whole_seconds_and_a_precise_event_time(api: Api) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "firstTimestamp": "2024-01-02T03:04:05+00:00",
        "lastTimestamp": "2024-01-02T05:04:05+02:00",
        "eventTime": "2024-01-02T03:04:05.000000Z",
        "reportingComponent": "example.com/tests",
        "reportingInstance": "one",
        "action": "Testing",
        "reason": "Tested",
        "type": "Normal",
    }
    made = api.create("events", event)
    assert (made["firstTimestamp"], made["lastTimestamp"]) == ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z")
    assert made["eventTime"] == "2024-01-02T03:04:05.000000Z"
