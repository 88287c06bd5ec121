"""The index of owner references."""

import orjson

from federation.registry.ownership import OwnershipIndex


def a_value(uid: str, *owners: str, ending: str = "") -> bytes:
    metadata: dict = {"resourceVersion": "1", "uid": uid}
    if owners:
        metadata["ownerReferences"] = [{"uid": owner} for owner in owners]
    if ending:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [ending]}
    return orjson.dumps({"apiVersion": "v1", "kind": "X", "metadata": metadata})


def test_an_object_without_owners_needs_no_look() -> None:
    assert set(OwnershipIndex().note("/a", a_value("a"))) == set()


def test_a_new_dependent_is_looked_at_once() -> None:
    index = OwnershipIndex()
    assert set(index.note("/b", a_value("b", "a"))) == {"/b"}
    assert set(index.note("/b", a_value("b", "a"))) == set()
    assert index.dependents("a") == ["/b"]


def test_a_removed_owner_points_to_its_dependents() -> None:
    index = OwnershipIndex()
    index.note("/b", a_value("b", "a"))
    index.note("/c", a_value("c", "a"))
    assert set(index.forget("/a", a_value("a"))) == {"/b", "/c"}


def test_a_reference_that_is_gone_is_forgotten() -> None:
    index = OwnershipIndex()
    index.note("/b", a_value("b", "a"))
    index.note("/b", a_value("b"))
    assert index.dependents("a") == []
    assert set(index.forget("/a", a_value("a"))) == set()


def test_a_waiting_owner_hears_of_its_dependents_end() -> None:
    index = OwnershipIndex()
    index.note("/b", a_value("b", "a"))
    assert set(index.note("/a", a_value("a", ending="foregroundDeletion"))) == {"/a"}
    assert set(index.forget("/b", a_value("b", "a"))) == {"/a"}


def test_orphaning_is_looked_at() -> None:
    assert set(OwnershipIndex().note("/a", a_value("a", ending="orphan"))) == {"/a"}
