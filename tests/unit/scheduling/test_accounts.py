"""Accounts of features: an amount counts from the decision on, and comes back when the object shows no claim."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import CONFIGMAPS, Object
from federation.scheduling.world import World
from federation.scheduling.worldobjects import Accounts, Index, ListedObjects, name_of


class Seats(Accounts):
    """An example: each object with the annotation takes a seat."""

    resource = CONFIGMAPS

    def put(self, obj: Object) -> str:
        return "it has no seats" if "seats" not in obj["spec"] else ""

    def remove(self, obj: Object) -> None:
        del obj

    def claim_of(self, federated: Mapping[str, Any]) -> str | None:
        return (federated["metadata"].get("annotations") or {}).get("seat")


def an_object(name: str, version: int, namespace: str = "default", **annotations: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version), "annotations": annotations}
    return {"metadata": metadata, "spec": {}}


def test_an_observation_says_whether_it_changes_what_is_used() -> None:
    seats, key = Seats(), ("default", "web")
    assert not seats.observe(key, an_object("web", 1))
    seats.ledger.assume(key, "1", 1)
    assert list(seats.ledger.payers()) == [key]
    assert seats.observe(key, an_object("web", 2, seat="1"))
    assert not seats.observe(key, an_object("web", 3, seat="1"))
    assert seats.observe(key, an_object("web", 4))
    seats.waiting.add(key)
    seats.ledger.assume(key, "1", 4)
    assert seats.observe(key, None)
    assert (list(seats.ledger.payers()), seats.waiting) == ([], set())


def test_a_world_has_the_indexes_that_steps_read_and_no_other_ones() -> None:
    world = World((Seats,))
    seats = world.index(Seats)
    assert isinstance(seats, Seats)
    assert world.accounts == (seats,)
    assert world.index(Index) is seats  # type: ignore[type-abstract]  # any of them
    assert World(()).index(Seats) is None


def test_a_change_counts_when_the_content_differs_and_affects_the_namespace() -> None:
    seats, old = Seats(), an_object("a", 1)
    assert not seats.is_changed(old, an_object("a", 2))
    assert seats.is_changed(old, {**old, "spec": {"seats": 1}})
    assert seats.is_changed(None, old)
    assert seats.is_changed(old, None)
    objects = ListedObjects([an_object("web", 1), an_object("web", 1, "other")])
    assert [name_of(each) for each in seats.affected(old, objects)] == [("default", "web")]
