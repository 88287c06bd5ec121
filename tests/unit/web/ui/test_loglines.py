"""Lines of logs: merged by time, searched, without control characters."""

from federation.web.ui.loglines import Line, merge, to_lines

EAST = b"2026-01-01T00:00:01Z one\n2026-01-01T00:00:03Z three\n  at main.py\n"
WEST = b"2026-01-01T00:00:02.5Z two\n"


def test_logs_are_merged_by_time_and_lines_without_one_stay_with_the_line_before() -> None:
    found = merge({"a": EAST, "b": WEST}, "", 10)
    assert [(line.source, line.text) for line in found] == [
        ("a", "one"),
        ("b", "two"),
        ("a", "three"),
        ("a", "  at main.py"),
    ]
    assert [line.text for line in merge({"a": EAST, "b": WEST}, "", 2)] == ["three", "  at main.py"]
    assert [line.text for line in merge({"a": EAST, "b": WEST}, "t", 10)] == ["two", "three", "  at main.py"]


def test_colours_and_control_characters_do_not_reach_the_page() -> None:
    text = b"2026-01-01T00:00:00Z \x1b[31mred\x1b[0m\ttab \x07bell \xe2\x80\xaeturned \xff\n"
    (line,) = to_lines(text, 10)
    assert line.text.startswith("red\ttab ")
    assert not {"\x1b", "\x07", "\u202e"} & set(line.text)


def test_a_line_without_an_end_is_cut() -> None:
    (line,) = to_lines(b"x" * 100_000, 10)
    assert line == Line("", "", "x" * 4000)


def test_a_member_that_sends_more_lines_than_it_was_asked_for_costs_no_more() -> None:
    found = to_lines(b"\n" * 10_000_000 + b"2026-01-01T00:00:00Z last\n", 3)
    assert [line.text for line in found] == ["", "", "last"]
    assert to_lines(b"", 3) == []
