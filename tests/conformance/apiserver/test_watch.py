"""Conformance area: watch."""

import itertools

import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.support.rest import METADATA, TABLE, Api, refused

OURS = {"labelSelector": "test"}


def a_map(name: str, value: str = "1") -> dict:
    return a_config_map(name, {"test": value})


def revision(api: Api) -> str:
    return api.list("configmaps")["metadata"]["resourceVersion"]


@pytest.mark.every_store
def test_changes_are_delivered_in_order(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), **OURS) as watch:
        api.create("configmaps", a_map("a"))
        api.patch("configmaps", "a", {"data": {"k": "w"}})
        api.delete("configmaps", "a")
        assert watch.said(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.every_store
def test_an_event_carries_the_object_as_it_was_answered(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), **OURS) as watch:
        created = api.create("configmaps", a_map("a"))
        assert watch.next() == ("ADDED", created)


@pytest.mark.every_store
def test_a_deletion_carries_a_newer_revision_than_the_object(api: Api) -> None:
    created = api.create("configmaps", a_map("a"))
    with api.watch("configmaps", resourceVersion=revision(api), **OURS) as watch:
        api.delete("configmaps", "a")
        type_, last = watch.next()
        assert type_ == "DELETED"
        assert int(last["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


@pytest.mark.every_store
def test_revisions_grow_from_event_to_event(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), **OURS) as watch:
        for name in "abcd":
            api.create("configmaps", a_map(name))
        seen = [int(obj["metadata"]["resourceVersion"]) for _, obj in itertools.islice(watch, 4)]
        assert seen == sorted(set(seen))


@pytest.mark.every_store
def test_without_a_revision_existing_objects_come_first(api: Api) -> None:
    api.create("configmaps", a_map("a"))
    api.create("configmaps", a_map("b"))
    with api.watch("configmaps", **OURS) as watch:
        assert sorted(watch.said(2)) == [("ADDED", "a"), ("ADDED", "b")]
        api.create("configmaps", a_map("c"))
        assert watch.said(1) == [("ADDED", "c")]


@pytest.mark.every_store
def test_a_watch_resumes_after_any_revision(api: Api) -> None:
    """[sig-api-machinery] Watchers should be able to restart watching from the last resource version observed."""
    first = api.create("configmaps", a_map("a"))
    api.create("configmaps", a_map("b"))
    api.delete("configmaps", "a")
    with api.watch("configmaps", resourceVersion=first["metadata"]["resourceVersion"], **OURS) as watch:
        assert watch.said(2) == [("ADDED", "b"), ("DELETED", "a")]


@pytest.mark.every_store
def test_all_watchers_see_the_same_order(api: Api) -> None:
    """[sig-api-machinery] Watchers should receive events on concurrent watches in same order."""
    since = revision(api)
    for name in "abc":
        api.create("configmaps", a_map(name))
        api.patch("configmaps", name, {"data": {"k": "w"}})
    seen = []
    for _ in range(3):
        with api.watch("configmaps", resourceVersion=since, **OURS) as watch:
            seen.append([obj["metadata"]["resourceVersion"] for _, obj in itertools.islice(watch, 6)])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.every_store
def test_an_object_enters_and_leaves_a_selection(api: Api) -> None:
    """[sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements."""
    with api.watch("configmaps", resourceVersion=revision(api), labelSelector="test=1") as watch:
        api.create("configmaps", a_map("a", "0"))
        api.patch("configmaps", "a", {"metadata": {"labels": {"test": "1"}}})
        api.patch("configmaps", "a", {"data": {"k": "w"}})
        api.patch("configmaps", "a", {"metadata": {"labels": {"test": "2"}}})
        api.delete("configmaps", "a")
        api.create("configmaps", a_map("b"))
        assert watch.said(4) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


def test_one_object_is_watched_by_field(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), fieldSelector="metadata.name=b") as watch:
        api.create("configmaps", a_map("a"))
        api.create("configmaps", a_map("b"))
        assert watch.said(1) == [("ADDED", "b")]


def test_all_namespaces_are_watched_together(api: Api) -> None:
    label = {"labelSelector": f"test={api.namespace}"}
    with api.watch("configmaps", namespace="", resourceVersion=revision(api), **label) as watch:
        api.create("configmaps", a_map("a", api.namespace))
        _, seen = watch.next()
        assert seen["metadata"]["namespace"] == api.namespace


@pytest.mark.every_store
def test_changes_of_other_namespaces_are_not_delivered(api: Api) -> None:
    with api.watch("configmaps", namespace="default", resourceVersion=revision(api), timeoutSeconds=1, **OURS) as watch:
        api.create("configmaps", a_map("a"))
        assert list(watch) == []


def test_a_watch_ends_at_its_timeout(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), timeoutSeconds=1, **OURS) as watch:
        assert list(watch) == []


@pytest.mark.every_store
def test_initial_events_end_with_a_marked_bookmark(api: Api) -> None:
    api.create("configmaps", a_map("a"))
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    with api.watch("configmaps", **query, **OURS) as watch:
        assert watch.said(1) == [("ADDED", "a")]
        type_, bookmark = watch.next()
        assert type_ == "BOOKMARK"
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["kind"] == "ConfigMap"


def test_initial_events_need_their_match(api: Api) -> None:
    with (
        refused(422, "Invalid", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        api.watch("configmaps", sendInitialEvents="true"),
    ):
        pass


def test_a_broken_selector_is_refused_before_the_stream(api: Api) -> None:
    with refused(400, "BadRequest"), api.watch("configmaps", labelSelector="a in (b"):
        pass


def test_a_nonsense_revision_is_refused(api: Api) -> None:
    with refused(400, "BadRequest", 'resourceVersion: Invalid value: "soon"'):
        api.list("configmaps", resourceVersion="soon")


@pytest.mark.ours("kube-apiserver answers with an internal server error")
def test_a_nonsense_revision_is_refused_for_a_watch_and_a_get(api: Api) -> None:
    with refused(400, "BadRequest", 'resourceVersion: Invalid value: "soon"'):
        api.get("configmaps", "any", resourceVersion="soon")
    with refused(400), api.watch("configmaps", resourceVersion="soon"):
        pass


def test_a_table_is_watched_row_by_row(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), accept=TABLE, **OURS) as watch:
        api.create("configmaps", a_map("a"))
        api.create("configmaps", a_map("b"))
        _, first = watch.next()
        _, second = watch.next()
        assert first["kind"] == "Table"
        assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert not second.get("columnDefinitions")
        assert second["rows"][0]["cells"][:2] == ["b", 1]


def test_metadata_is_watched_alone(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=revision(api), accept=METADATA, **OURS) as watch:
        api.create("configmaps", a_map("a"))
        _, seen = watch.next()
        assert seen["kind"] == "PartialObjectMetadata"
        assert seen["apiVersion"] == "meta.k8s.io/v1"
        assert "data" not in seen


def first_line(api: Api, url: str, **query: str) -> str:
    with api.http.stream("GET", url, params=query) as answer:
        return next(answer.iter_lines())


def test_the_old_watch_path_still_works(api: Api) -> None:
    api.create("configmaps", a_map("a"))
    url = f"/api/v1/watch/namespaces/{api.namespace}/configmaps"
    assert '"ADDED"' in first_line(api, url, **OURS)


@pytest.mark.every_store
def test_a_patch_that_changes_nothing_is_not_delivered(api: Api) -> None:
    api.create("configmaps", a_map("a"))
    with api.watch("configmaps", resourceVersion=revision(api), **OURS) as watch:
        api.patch("configmaps", "a", {"data": {"k": "v"}})
        api.create("configmaps", a_map("b"))
        assert watch.said(1) == [("ADDED", "b")]


@pytest.mark.every_store
def test_without_initial_events_a_watch_begins_now(api: Api) -> None:
    api.create("configmaps", a_config_map("before"))
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    with api.watch("configmaps", labelSelector="watched", **query) as watch:
        api.create("configmaps", a_config_map("after", labels={"watched": ""}))
        assert watch.said(1) == [("ADDED", "after")]


@pytest.mark.parametrize("word", ["1", "true", "yes"])
def test_every_word_but_no_asks_for_a_watch(api: Api, word: str) -> None:
    api.create("configmaps", a_config_map("it", labels={"watched": ""}))
    line = first_line(api, api.url("configmaps"), watch=word, labelSelector="watched")
    assert line.startswith('{"type":"ADDED"')
    assert api.list("configmaps", watch="0")["kind"] == "ConfigMapList"
