"""The picture of capacity, and what it says about the loss of a cluster."""

from typing import Any

from federation.web.ui.capacityscreen import to_bars, verdict_of


def an_item(name: str, replicas: int = 0, homeless: int = 0, staying: int = 0) -> dict[str, Any]:
    return {"cluster": name, "loss": {"replicas": replicas, "homeless": homeless, "staying": staying}}


def test_segments_join_without_gaps_and_the_longest_bar_fills_the_picture() -> None:
    long, short, empty = to_bars([an_item("a", 10, homeless=4, staying=1), an_item("b", 5), an_item("c")])
    assert [tone for _, _, tone in long.segments] == ["fits", "stays", "homeless"]
    ends = [0.0, *(round(x + width, 2) for x, width, _ in long.segments)]
    assert [x for x, _, _ in long.segments] == ends[:-1]
    assert ends[-1] == 100.0
    assert short.segments == ((0.0, 50.0, "fits"),)
    assert empty.segments == ()


def test_the_verdict_names_the_worst() -> None:
    assert verdict_of(an_item("a", 5, homeless=2, staying=1)) == ("bad", "2 of 5 replicas would find no room")
    assert verdict_of(an_item("a", 5, staying=1)) == ("warn", "1 of 5 replicas may not leave")
    assert verdict_of(an_item("a", 5)) == ("good", "Can be lost")
    assert verdict_of(an_item("a"))[0] == "unknown"
