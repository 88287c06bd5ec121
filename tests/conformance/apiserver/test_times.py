"""Conformance area "times": Lease and Event return times in the format of their types."""

from tests.support.rest import Api


def test_a_lease_keeps_microseconds(api: Api) -> None:
    sent = {"acquireTime": "2024-01-02T03:04:05Z", "renewTime": "2024-01-02T05:04:05.1234567+02:00"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": sent}
    spec = api.create("leases", lease)["spec"]
    assert spec == {"acquireTime": "2024-01-02T03:04:05.000000Z", "renewTime": "2024-01-02T03:04:05.123456Z"}
    assert api.get("leases", "l")["spec"] == spec


def test_an_event_has_whole_seconds_and_a_precise_event_time(api: Api) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "firstTimestamp": "2024-01-02T03:04:05+00:00",
        "lastTimestamp": "2024-01-02T05:04:05+02:00",
        "eventTime": "2024-01-02T03:04:05Z",
        "reportingComponent": "example.com/tests",
        "reportingInstance": "one",
        "action": "Testing",
        "reason": "Tested",
        "type": "Normal",
    }
    made = api.create("events", event)
    assert (made["firstTimestamp"], made["lastTimestamp"]) == ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z")
    assert made["eventTime"] == "2024-01-02T03:04:05.000000Z"
