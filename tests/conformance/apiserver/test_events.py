"""Events: one set of objects in two API groups, the required fields of each, and field selectors."""

from typing import Any

import pytest
from tests.support.rest import Api, Object, refused

NEW = "events.k8s.io/v1/events"


def an_event(api: Api, name: str = "e", **fields: Any) -> Object:
    """Return a v1 Event as client-go's older recorder writes it."""
    return {
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace},
        "type": "Warning",
        "reason": "BackOff",
        "message": "again and again",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
        "count": 3,
        **fields,
    }


def a_report(api: Api, name: str = "r", **fields: Any) -> Object:
    """Return an events.k8s.io/v1 Event as the newer recorder writes it."""
    return {
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace},
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-0",
        "action": "Binding",
        "reason": "Scheduled",
        "note": "assigned",
        "type": "Normal",
        **fields,
    }


def test_an_old_event_is_read_by_its_new_names(api: Api) -> None:
    created = api.create("events", an_event(api))
    seen = api.get(NEW, "e")
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert seen["metadata"] == created["metadata"]
    assert (seen["regarding"]["name"], seen["note"], seen["deprecatedCount"]) == ("p", "again and again", 3)
    assert seen["deprecatedSource"] == {"component": "kubelet", "host": "n1"}
    assert seen["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    assert not {"involvedObject", "message", "count", "source"} & seen.keys()


def test_a_new_event_is_read_by_its_old_names(api: Api) -> None:
    created = api.create(NEW, a_report(api))
    seen = api.get("events", "r")
    assert (seen["apiVersion"], seen["metadata"]) == ("v1", created["metadata"])
    assert (seen["involvedObject"]["name"], seen["message"]) == ("p", "assigned")
    assert (seen["reportingComponent"], seen["eventTime"]) == ("example.com/controller", "2026-01-01T00:00:00.123456Z")
    assert [item["metadata"]["name"] for item in api.list(NEW)["items"]] == ["r"]


def test_what_is_empty_is_written_as_kubernetes_writes_it(api: Api) -> None:
    event = an_event(api)
    for field in ("source", "firstTimestamp", "lastTimestamp", "count"):
        del event[field]
    created = api.create("events", event)
    assert (created["source"], created["reportingComponent"], created["reportingInstance"]) == ({}, "", "")
    assert (created["eventTime"], created["firstTimestamp"], created["lastTimestamp"]) == (None, None, None)


def test_a_new_event_says_who_reports_what(api: Api) -> None:
    with refused(422, "Invalid") as caught:
        api.create(NEW, {"metadata": {"name": "r"}, "regarding": {"namespace": api.namespace}, "deprecatedCount": 1})
    assert {"eventTime", "type", "count"} <= set(caught.value.fields)
    incomplete = a_report(api, reportingController="", reportingInstance="", action="")
    with refused(422, "Invalid") as caught:
        api.create(NEW, incomplete)
    assert {"reportingController", "reportingInstance", "action"} <= set(caught.value.fields)


def test_only_the_series_of_a_new_event_changes(api: Api) -> None:
    api.create(NEW, a_report(api))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:05:00.000000Z"}
    assert api.patch(NEW, "r", {"series": series})["series"] == series
    assert api.get("events", "r")["series"] == series
    with refused(422, "Invalid", "field is immutable"):
        api.patch(NEW, "r", {"note": "something else"})


@pytest.mark.parametrize("involved", [{"namespace": "kube-system"}, {}], ids=["another", "none"])
def test_an_event_stands_in_the_namespace_of_its_object(api: Api, involved: dict[str, str]) -> None:
    with refused(422, "Invalid", "does not match event.namespace"):
        api.create("events", an_event(api, involvedObject={"kind": "Pod", "name": "p", **involved}))


@pytest.mark.every_store
def test_both_names_are_watched(api: Api) -> None:
    with api.watch(NEW, resourceVersion=api.list(NEW)["metadata"]["resourceVersion"]) as watch:
        api.create("events", an_event(api))
        type_, seen = watch.next()
    assert (type_, seen["apiVersion"], seen["note"]) == ("ADDED", "events.k8s.io/v1", "again and again")


@pytest.mark.parametrize(
    ("plural", "selector", "found"),
    [
        ("events", "involvedObject.kind=Pod,reason=BackOff", ["e"]),
        ("events", "involvedObject.name!=p", []),
        ("events", "type=Normal", ["r"]),
        ("events", "reportingComponent=example.com/controller", ["r"]),
        ("events", "source=kubelet", ["e"]),
        (NEW, "regarding.name=p,type=Warning", ["e"]),
        (NEW, "reportingController=example.com/controller", ["r"]),
    ],
)
def test_events_are_selected_by_field(api: Api, plural: str, selector: str, found: list[str]) -> None:
    api.create("events", an_event(api))
    api.create(NEW, a_report(api))
    assert api.names(plural, fieldSelector=selector) == found
