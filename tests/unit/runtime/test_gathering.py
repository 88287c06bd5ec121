"""Changes that arrive together are applied together, and of one object only the newest state."""

from typing import Any

import pytest

from federation.apimachinery.resources import CONFIGMAPS
from federation.client.client import WatchEvent, WatchEventType
from federation.runtime.gathering import newest_states
from federation.runtime.informer import Informer
from federation.runtime.informeroptions import InformerOptions

A, M, D, B = WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED, WatchEventType.BOOKMARK


def an_event(type_: WatchEventType, name: str, revision: int) -> WatchEvent:
    return WatchEvent(type_, {"metadata": {"namespace": "default", "name": name, "resourceVersion": str(revision)}})


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([(A, "x", 1)], [(A, "x", 1)]),
        ([(A, "x", 1), (M, "x", 2), (M, "y", 3), (M, "x", 4)], [(M, "y", 3), (M, "x", 4)]),
        ([(M, "x", 1), (D, "x", 2), (A, "x", 3), (M, "x", 4)], [(M, "x", 1), (D, "x", 2), (M, "x", 4)]),
        ([(M, "x", 1), (M, "x", 2), (D, "x", 3)], [(M, "x", 2), (D, "x", 3)]),
        ([(M, "x", 1), (D, "y", 2), (M, "x", 3)], [(D, "y", 2), (M, "x", 3)]),
    ],
)
def test_a_later_state_replaces_an_earlier_one_unless_the_object_was_deleted_in_between(events, kept) -> None:
    expected = [an_event(*event) for event in kept]
    assert newest_states([an_event(*event) for event in events]) == expected


@pytest.mark.parametrize("malformed", [None, [], {}, {"metadata": None}, {"metadata": {"name": []}}, {"metadata": {}}])
def test_malformed_items_and_bookmarks_stay(malformed: Any) -> None:
    bookmark = WatchEvent(B, {"metadata": {"resourceVersion": "9"}})
    batch = [an_event(A, "x", 1), WatchEvent(M, malformed), bookmark, WatchEvent(M, malformed), an_event(M, "x", 2)]
    assert newest_states(batch) == batch[1:]


async def test_an_informer_that_gathers_applies_a_single_change_at_once_and_the_following_ones_together(
    server, client, clock, start, settle, a_configmap
) -> None:
    heard: list[tuple[str | None, str | None]] = []

    def color_of(obj: Any) -> str | None:
        return obj["data"]["color"] if obj else None

    options = InformerOptions(gather_s=0.5)
    informer = Informer(client, CONFIGMAPS, namespace="default", clock=clock, options=options)
    informer.add_handler(lambda old, new: heard.append((color_of(old), color_of(new))))
    start(informer.run())
    await informer.wait_synced()
    await settle()
    await server.create(CONFIGMAPS, a_configmap("c", color="blue"))
    await settle()
    assert heard == [(None, "blue")]
    for color in ("red", "green", "white"):
        await server.patch(CONFIGMAPS, "c", {"data": {"color": color}}, namespace="default")
    await settle()
    assert heard == [(None, "blue")]
    await clock.advance(0.5)
    await settle()
    assert heard[-1][1] == "white"
    assert informer.get("default", "c")["data"]["color"] == "white"
