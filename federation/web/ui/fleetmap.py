"""The map of the fleet, drawn by the server: regions with their clusters, and flows of moves between them. Pure.

Places stand on a ring, so that a flow between any two of them crosses the middle only. A map of one region has its
clusters as places, beside the other regions that exchange replicas with it. Lengths are units of the picture, which
does not depend on the width of the screen.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from federation.apimachinery.amounts import to_count
from federation.apimachinery.naturalorder import natural_key
from federation.web.ui.clustercards import ClusterCard, by_region
from federation.web.ui.flows import Flow

WIDTH = 1040
BOX_WIDTH = 240
PLACES_MAX = 14
ARROWS_MAX = 24
SQUARES_MAX = 36
SQUARE, _PER_ROW = 15, 12
_GAP, _SIDE = 26, 14
_STROKE_MIN, _STROKE_MAX = 2.0, 11.0
_TITLE_MAX = 26
_REST = "\0"
"""Stands for the places that have no box of their own."""
_ALONGS = (0.5, 0.36, 0.64, 0.26, 0.74)
"""Places of a number on its arrow, of which the first free one is taken."""
TONES: Mapping[str, str] = {"ready": "good", "limited": "warn", "lost": "bad"}


@dataclass(frozen=True, slots=True)
class Place:
    """What a box stands for. `cards` are its clusters; `key` is the region, or the cluster of a map of one region."""

    key: str
    title: str
    href: str
    cards: tuple[ClusterCard, ...]


@dataclass(frozen=True, slots=True)
class Square:
    """A cluster in the box of its region."""

    x: int
    y: int
    tone: str
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Box:
    """A place in the picture: its title, one or two notes, its squares, and how many of them do not fit."""

    x: int
    y: int
    height: int
    title: str
    full: str
    href: str
    tone: str
    notes: tuple[str, ...]
    squares: tuple[Square, ...]
    more: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """Moves from one box to another: its line, the points of its head, and its number with its place."""

    path: str
    head: str
    width: float
    x: float
    y: float
    replicas: int
    words: str


@dataclass(frozen=True, slots=True)
class FleetMap:
    """The picture; `words` say what it shows."""

    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    arrows_more: int
    words: str


def places_of(cards: Sequence[ClusterCard], flows: Sequence[Flow], region: str) -> list[Place]:
    """Return the places of a map: all regions, or the clusters of one and the regions that it exchanges with."""
    regions = by_region(cards)
    if not region and len(regions) == 1:
        region = regions[0][0]
    if not region:
        return [_to_region(name, found) for name, found in regions]
    own = dict(regions).get(region, [])
    names, home = {card.name for card in own}, {card.name: card.region for card in cards}
    others = {
        home.get(other)
        for flow in flows
        for one, other in ((flow.source, flow.target), (flow.target, flow.source))
        if one in names and other not in names
    }
    busy = Counter[str]()
    for flow in flows:
        busy.update({flow.source: flow.replicas, flow.target: flow.replicas})
    own = sorted(own, key=lambda card: (card.health == "ready", -busy[card.name], natural_key(card.name)))
    return [
        *(Place(card.name, card.name, f"/ui/fleet/{quote(card.name, safe='')}", (card,)) for card in own),
        *(_to_region(name, found) for name, found in regions if name in others and name != region),
    ]


def _to_region(name: str, cards: Sequence[ClusterCard]) -> Place:
    return Place(name, name, f"/ui/map?region={quote(name, safe='')}", tuple(cards))


def draw(places: Sequence[Place], flows: Sequence[Flow]) -> FleetMap:
    """Return the picture of the places and the flows between them."""
    shown = list(places)
    if len(places) > PLACES_MAX:
        shown, rest = list(places[: PLACES_MAX - 1]), places[PLACES_MAX - 1 :]
        cards = tuple(card for place in rest for card in place.cards)
        shown.append(Place(_REST, f"{len(rest)} others", "/ui/fleet", cards))
    home = {card.name: place.key for place in shown for card in place.cards}
    between: dict[tuple[str, str], list[int]] = {}
    within, came, left = Counter[str](), Counter[str](), Counter[str]()
    for flow in flows:
        source, target = home.get(flow.source), home.get(flow.target)
        if source is None or target is None:
            continue
        if source == target:
            within[source] += flow.replicas
            continue
        left[source] += flow.replicas
        came[target] += flow.replicas
        amount = between.setdefault((source, target), [0, 0])
        amount[0] += flow.replicas
        amount[1] += flow.objects
    notes = [_notes(place, came[place.key], left[place.key], within[place.key]) for place in shown]
    spots, height = _ring([_height_of(place, said) for place, said in zip(shown, notes, strict=True)])
    boxes = [_to_box(*each) for each in zip(shown, spots, notes, strict=True)]
    order = sorted(between, key=lambda ends: (-between[ends][0], ends))
    arrows = _arrows(shown, spots, [(ends, between[ends][0], between[ends][1]) for ends in order[:ARROWS_MAX]])
    moved = sum(amount[0] for amount in between.values())
    words = f"{to_count(len(places), 'place')}; {to_count(moved, 'replica')} moved between them"
    return FleetMap(height, tuple(boxes), arrows, len(order) - len(arrows), words)


def _notes(place: Place, came: int, left: int, within: int) -> tuple[str, ...]:
    ready = sum(card.health in ("ready", "limited") for card in place.cards)
    state = f"{ready} of {len(place.cards)} ready" if len(place.cards) > 1 else place.cards[0].state
    moves = " · ".join(f"{n:,} {verb}" for n, verb in ((came, "came"), (left, "left"), (within, "within")) if n)
    return (state, moves) if moves else (state,)


def _top_of_squares(notes: Sequence[str]) -> int:
    return 34 + 18 * len(notes)


def _height_of(place: Place, notes: Sequence[str]) -> int:
    if len(place.cards) == 1:
        return _top_of_squares(notes)
    return _top_of_squares(notes) + -(-min(len(place.cards), SQUARES_MAX) // _PER_ROW) * SQUARE + 8


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a box is; `side` is where flows leave it, as a step in x and y."""

    x: int
    y: int
    height: int
    side: tuple[int, int]

    def anchor(self, share: float) -> tuple[float, float]:
        """Return the point at a share of the side, from 0 to 1."""
        dx, dy = self.side
        if dx:
            return (self.x + BOX_WIDTH if dx > 0 else self.x, self.y + share * self.height)
        return (self.x + share * BOX_WIDTH, self.y + self.height if dy > 0 else self.y)

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the box."""
        return self.x + BOX_WIDTH / 2, self.y + self.height / 2


def _ring(heights: Sequence[int]) -> tuple[list[_Spot], int]:
    """Return the places on the ring, clockwise from the left, and the height of the picture."""
    count = len(heights)
    at_top, at_bottom = count >= 3, count >= 4  # three make a triangle, four a ring
    sides = count - at_top - at_bottom
    lefts = -(-sides // 2)
    top = heights[lefts] if at_top else 0
    begin = top + _GAP if at_top else 0
    left, right = heights[:lefts], heights[lefts + at_top : lefts + at_top + sides - lefts]
    room = max(sum(column) + _GAP * (len(column) - 1) for column in (left, right or [0]))
    room = max(room, 150 if count > 1 else 0)  # room for curves
    spots: list[_Spot] = []

    def column(column_heights: Sequence[int], x: int, dx: int, *, upwards: bool) -> None:
        gap = (room - sum(column_heights)) / (len(column_heights) + 1)
        y, found = begin + gap, []
        for height in reversed(column_heights) if upwards else column_heights:
            found.append(_Spot(x, round(y), height, (dx, 0)))
            y += height + gap
        spots.extend(reversed(found) if upwards else found)

    middle = (WIDTH - BOX_WIDTH) // 2
    column(left, 0, 1, upwards=True)
    if at_top:
        spots.append(_Spot(middle, 0, top, (0, 1)))
    column(right, WIDTH - BOX_WIDTH, -1, upwards=False)
    height = begin + room
    if at_bottom:
        spots.append(_Spot(middle, height + _GAP, heights[-1], (0, -1)))
        height += _GAP + heights[-1]
    return spots, height


def _to_box(place: Place, spot: _Spot, notes: tuple[str, ...]) -> Box:
    cards = sorted(place.cards, key=lambda card: card.health == "ready") if len(place.cards) > 1 else []
    squares = tuple(
        Square(
            spot.x + _SIDE + at % _PER_ROW * (SQUARE + 3),
            spot.y + _top_of_squares(notes) + at // _PER_ROW * SQUARE,
            TONES.get(card.health, "unknown"),
            f"{card.name}: {card.state}",
            f"/ui/fleet/{quote(card.name, safe='')}",
        )
        for at, card in enumerate(cards[: SQUARES_MAX if len(cards) <= SQUARES_MAX else SQUARES_MAX - 2])
    )
    more = f"+{len(cards) - len(squares)}" if len(cards) > len(squares) else ""
    title = place.title if len(place.title) <= _TITLE_MAX else f"{place.title[: _TITLE_MAX - 1]}…"
    tones = {TONES.get(card.health, "unknown") for card in place.cards}
    tone = next((tone for tone in ("bad", "warn", "unknown") if tone in tones), "good")
    return Box(spot.x, spot.y, spot.height, title, place.title, place.href, tone, notes, squares, more)


def _arrows(
    places: Sequence[Place], spots: Sequence[_Spot], flows: Sequence[tuple[tuple[str, str], int, int]]
) -> tuple[Arrow, ...]:
    index = {place.key: at for at, place in enumerate(places)}
    ends: dict[int, list[tuple[float, bool, int]]] = {}
    for number, ((source, target), _, _) in enumerate(flows):
        one, other = index[source], index[target]
        for here, there in ((one, other), (other, one)):
            across = spots[there].middle[1 if spots[here].side[0] else 0]
            ends.setdefault(here, []).append((across, one > other, number))
    shares = {
        (here, number): (at + 1) / (len(found) + 1)
        for here, found in ends.items()
        for at, (_, _, number) in enumerate(sorted(found))
    }
    most, numbers = max((replicas for _, replicas, _ in flows), default=1), list[tuple[float, float]]()
    arrows = []
    for number, ((source, target), replicas, objects) in enumerate(flows):
        one, other = index[source], index[target]
        width = round(max(_STROKE_MIN, _STROKE_MAX * (replicas / most) ** 0.5), 1)
        curve = _curve(spots[one], spots[other], shares[one, number], shares[other, number], width)
        x, y = next(
            (spot for along in _ALONGS if _is_free(spot := _point(curve, along), numbers)), _point(curve, _ALONGS[0])
        )
        numbers.append((x, y))
        names = places[one].title, places[other].title
        words = f"{names[0]} to {names[1]}: {to_count(replicas, 'replica')} of {to_count(objects, 'move')}"
        arrows.append(Arrow(_path(curve), _head(curve, width), width, round(x), round(y), replicas, words))
    return tuple(arrows)


_Curve = tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]


def _curve(source: _Spot, target: _Spot, leaves: float, arrives: float, width: float) -> _Curve:
    """Return a curve that leaves one side and arrives at the other at a right angle, with room for its head."""
    (x1, y1), (x2, y2) = source.anchor(leaves), target.anchor(arrives)
    (dx1, dy1), (dx2, dy2) = source.side, target.side
    head = _head_length(width)
    x2, y2 = x2 + dx2 * head, y2 + dy2 * head
    bend = max(70.0, 0.4 * ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    return (x1, y1), (x1 + dx1 * bend, y1 + dy1 * bend), (x2 + dx2 * bend, y2 + dy2 * bend), (x2, y2)


def _head_length(width: float) -> float:
    return 6 + 1.3 * width


def _path(curve: _Curve) -> str:
    start, *rest = (f"{x:.0f} {y:.0f}" for x, y in curve)
    return f"M{start} C{' '.join(rest)}"


def _head(curve: _Curve, width: float) -> str:
    """Return the points of the head, which continues the end of the curve."""
    (x2, y2), (cx, cy) = curve[3], curve[2]
    length = _head_length(width)
    dx, dy = ((x2 > cx) - (x2 < cx), 0) if abs(x2 - cx) > abs(y2 - cy) else (0, (y2 > cy) - (y2 < cy))
    half = length * 0.62
    points = (
        (x2 + dx * length, y2 + dy * length),
        (x2 - dy * half, y2 + dx * half),
        (x2 + dy * half, y2 - dx * half),
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _point(curve: _Curve, along: float) -> tuple[float, float]:
    rest = 1 - along
    weights = (rest**3, 3 * rest * rest * along, 3 * rest * along * along, along**3)
    return (
        sum(weight * point[0] for weight, point in zip(weights, curve, strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, curve, strict=True)),
    )


def _is_free(spot: tuple[float, float], taken: Sequence[tuple[float, float]]) -> bool:
    return all(abs(spot[0] - x) > 34 or abs(spot[1] - y) > 20 for x, y in taken)  # the size of a number
