"""Series of numbers as lines, areas and bars, for pictures drawn by the server. Pure.

Values are one per step of time, the newest last, None where nothing is known; a line has a gap there. Pictures are
`WIDTH` by `HEIGHT` in their own units and are stretched, so that lines must not scale with them
(`vector-effect: non-scaling-stroke`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 240.0, 60.0
_ROOM = 4.0
"""Free units above the highest value, so that its line is not cut."""
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """A series: the path of its line, that of the area below it, and its last, least and greatest value."""

    line: str
    area: str
    last: float | None
    least: float | None
    most: float | None


def draw_line(values: Values, highest: float | None = None) -> Line:
    """Return a series as a line above zero; `highest` is the value at the top, the greatest of the series if None."""
    known = [value for value in values if value is not None]
    most = max(known, default=None)
    top = highest if highest is not None else most
    parts = [_points(part, start, len(values), top or 1.0) for start, part in _runs(values)]
    return Line(
        " ".join(_path(part) for part in parts),
        " ".join(f"{_path(part)} V{HEIGHT:g} H{_number(part[0][0])} Z" for part in parts),
        known[-1] if known else None,
        min(known, default=None),
        most,
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """One series of a stack: the path of its area, its name, and its last value."""

    name: str
    path: str
    last: float | None


def stack(series: Mapping[str, Values]) -> list[Layer]:
    """Return series as areas on top of each other, the first at the bottom; all have a value where the first has."""
    columns = list(zip(*series.values(), strict=True)) if series else []
    top = max((sum(value or 0.0 for value in column) for column in columns), default=0.0) or 1.0
    layers = []
    for number, (name, values) in enumerate(series.items()):
        below = [None if column[0] is None else sum(value or 0.0 for value in column[:number]) for column in columns]
        above = [None if low is None else low + (value or 0.0) for low, value in zip(below, values, strict=True)]
        paths = []
        for start, part in _runs(above):
            upper = _points(part, start, len(values), top)
            lows = [value or 0.0 for value in below[start : start + len(part)]]
            lower = _points(lows, start, len(values), top)
            paths.append(f"{_path(upper)} {_path(lower[::-1]).replace('M', 'L', 1)} Z")
        known = [value for value in values if value is not None]
        layers.append(Layer(name, " ".join(paths), known[-1] if known else None))
    return layers


@dataclass(frozen=True, slots=True)
class Column:
    """A bar of a series that counts: its place, size and value."""

    x: float
    y: float
    width: float
    height: float
    value: float


def draw_columns(values: Values, highest: float) -> list[Column]:
    """Return the steps that count something as bars; `highest` is the value at the top."""
    step = WIDTH / max(1, len(values))
    columns = []
    for at, value in enumerate(values):
        if value:
            height = max(2.0, (HEIGHT - _ROOM) * value / (highest or value))
            x, y, width = round(at * step, 2), round(HEIGHT - height, 2), round(max(step * 0.8, 1), 2)
            columns.append(Column(x, y, width, round(height, 2), value))
    return columns


def _runs(values: Values) -> list[tuple[int, list[float]]]:
    """Return the parts without gaps, with the position of each."""
    runs: list[tuple[int, list[float]]] = []
    is_open = False
    for at, value in enumerate(values):
        if value is None:
            is_open = False
            continue
        if not is_open:
            runs.append((at, []))
            is_open = True
        runs[-1][1].append(value)
    return runs


def _points(values: Sequence[float], start: int, count: int, top: float) -> list[tuple[float, float]]:
    """Return the points of values; one alone becomes a line as long as its step."""
    step = WIDTH / max(1, count - 1)
    points = [
        (round((start + at) * step, 2), round(HEIGHT - (HEIGHT - _ROOM) * min(1.0, value / top), 2))
        for at, value in enumerate(values)
    ]
    if len(points) == 1:
        x, y = points[0]
        return [(max(0.0, x - step), y), (min(WIDTH, x + step), y)]
    return points


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:g}"
