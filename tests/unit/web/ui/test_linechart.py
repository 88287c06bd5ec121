"""Lines, areas and bars of series: gaps, heights, and pictures of little data."""

from federation.web.ui.linechart import draw_columns, draw_line, stack


def test_a_line_ends_at_both_sides_and_its_height_is_the_value() -> None:
    drawn = draw_line([0.0, 2.0, 1.0])
    assert drawn.line == "M0 60 L120 4 L240 32"
    assert drawn.area == "M0 60 L120 4 L240 32 V60 H0 Z"
    assert (drawn.last, drawn.least, drawn.most) == (1.0, 0.0, 2.0)


def test_a_gap_divides_a_line_and_a_lonely_value_is_still_seen() -> None:
    assert draw_line([1.0, None, None, 1.0, 1.0]).line == "M0 4 L60 4 M180 4 L240 4"
    assert draw_line([None, 3.0, None]).line == "M0 4 L240 4"


def test_nothing_known_is_an_empty_picture() -> None:
    for values in ([], [None, None]):
        drawn = draw_line(values)
        assert (drawn.line, drawn.area, drawn.last) == ("", "", None)


def test_zeros_are_a_line_on_the_ground() -> None:
    assert draw_line([0.0, 0.0]).line == "M0 60 L240 60"


def test_a_given_height_bounds_the_picture() -> None:
    assert draw_line([5.0, 20.0], 10.0).line == "M0 32 L240 4", "a value above is cut"


def test_a_stack_puts_each_series_on_the_one_before() -> None:
    lower, upper = stack({"a": [None, 1.0, 1.0], "b": [None, 1.0, 3.0]})
    assert lower.path == "M120 46 L240 46 L240 60 L120 60 Z"
    assert upper.path == "M120 32 L240 4 L240 46 L120 46 Z"
    assert (lower.name, upper.last) == ("a", 3.0)
    assert [layer.path for layer in stack({"a": [], "b": []})] == ["", ""]


def test_only_steps_that_count_have_a_bar_and_a_small_one_is_seen() -> None:
    few, many = draw_columns([0.0, 1.0, None, 1000.0], 1000.0)
    assert (few.x, few.height, few.value) == (60.0, 2.0, 1.0)
    assert (many.y, many.height) == (4.0, 56.0)
