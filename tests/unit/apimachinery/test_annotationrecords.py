"""Records in annotations: strict, limited in size, and written the same at every time."""

from datetime import UTC, datetime

import msgspec
import pytest

from federation.apimachinery.annotationrecords import AnnotationRecord, Count, Time

NAME = "example.com/record"


class Move(msgspec.Struct, frozen=True, rename="camel"):
    """A record of a test."""

    moved_at: Time
    count: Count = 0


MOVES = AnnotationRecord(NAME, dict[str, Move], characters_max=200)


def an_object(text: str | None) -> dict[str, object]:
    return {"metadata": {"annotations": {NAME: text} if text is not None else {}}}


def test_a_record_is_read_as_it_was_written() -> None:
    moves = {"west": Move(datetime(2026, 1, 2, tzinfo=UTC), 3), "east": Move(datetime(2026, 1, 1, tzinfo=UTC))}
    text = MOVES.text(moves)
    assert text == (
        '{"east":{"count":0,"movedAt":"2026-01-01T00:00:00Z"},"west":{"count":3,"movedAt":"2026-01-02T00:00:00Z"}}'
    )
    assert MOVES.of(an_object(text)) == moves
    assert MOVES.entry(moves) == {NAME: text}


def test_fields_can_keep_their_order() -> None:
    record = AnnotationRecord(NAME, dict[str, Move], order="deterministic")
    move = Move(datetime(2026, 1, 1, tzinfo=UTC))
    assert record.text({"b": move, "a": move}) == (
        '{"a":{"movedAt":"2026-01-01T00:00:00Z","count":0},"b":{"movedAt":"2026-01-01T00:00:00Z","count":0}}'
    )


def test_sets_are_written_in_order() -> None:
    assert AnnotationRecord(NAME, frozenset[str]).text(frozenset("cab")) == '["a","b","c"]'


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "null",
        "[]",
        '{"east":{}}',
        '{"east":{"movedAt":"2026-01-01T00:00:00"}}',
        '{"east":{"movedAt":"2026-01-01T00:00:00Z","count":-1}}',
        '{"east":{"movedAt":"2026-01-01T00:00:00Z","count":true}}',
        '{"east":{"movedAt":"2026-01-01T00:00:00Z","count":"1"}}',
        '{"\ud800":1}',
        '{"a":' + "[" * 150,
        " " * 200 + "{}",
    ],
)
def test_what_cannot_be_read_is_no_record(text: str | None) -> None:
    assert MOVES.of(an_object(text)) is None


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_an_object_without_annotations_has_no_record(obj: dict[str, object]) -> None:
    assert MOVES.of(obj) is None


def test_a_text_that_is_nested_too_deeply_is_no_record() -> None:
    assert AnnotationRecord(NAME, dict[str, object]).read('{"a":' * 20_000 + "1" + "}" * 20_000) is None


def test_an_empty_record_removes_the_annotation() -> None:
    assert MOVES.entry({}) == MOVES.entry(None) == {NAME: None}
