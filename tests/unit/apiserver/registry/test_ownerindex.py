"""The index of owner references."""

import orjson

from federation.apiserver.registry.ownerindex import OwnerIndex


def a_value(uid: str, *owners: str, ending: str = "") -> bytes:
    metadata: dict = {"resourceVersion": "1", "uid": uid}
    if owners:
        metadata["ownerReferences"] = [{"uid": owner} for owner in owners]
    if ending:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [ending]}
    return orjson.dumps({"apiVersion": "v1", "kind": "X", "metadata": metadata})


def test_an_object_without_owners_is_ignored() -> None:
    assert set(OwnerIndex().record("/a", a_value("a"))) == set()


def test_a_new_dependent_is_returned_once() -> None:
    index = OwnerIndex()
    assert set(index.record("/b", a_value("b", "a"))) == {"/b"}
    assert set(index.record("/b", a_value("b", "a"))) == set()
    assert index.dependents("a") == ["/b"]


def test_a_removed_owner_returns_its_dependents() -> None:
    index = OwnerIndex()
    index.record("/b", a_value("b", "a"))
    index.record("/c", a_value("c", "a"))
    assert set(index.remove("/a", a_value("a"))) == {"/b", "/c"}


def test_a_removed_reference_leaves_the_index() -> None:
    index = OwnerIndex()
    index.record("/b", a_value("b", "a"))
    index.record("/b", a_value("b"))
    assert index.dependents("a") == []
    assert set(index.remove("/a", a_value("a"))) == set()


def test_a_waiting_owner_is_returned_when_its_dependent_is_removed() -> None:
    index = OwnerIndex()
    index.record("/b", a_value("b", "a"))
    assert set(index.record("/a", a_value("a", ending="foregroundDeletion"))) == {"/a"}
    assert set(index.remove("/b", a_value("b", "a"))) == {"/a"}


def test_an_owner_that_orphans_is_returned() -> None:
    assert set(OwnerIndex().record("/a", a_value("a", ending="orphan"))) == {"/a"}
