"""Scores of clusters as bars of one part per plugin, for pictures drawn by the server. Pure.

A bar is as long as the cluster's total score, in percent of the longest. Plugins that tell clusters apart come first,
so that differences are next to the axis; those that score all clusters alike come last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.scheduling.decisiontext import common_scores, score_text, weights_of
from federation.scheduling.explanations import ClusterRow

COLOURS = 8
"""Colours of the style sheet; with more plugins they repeat."""


@dataclass(frozen=True, slots=True)
class Part:
    """A plugin's part of a bar: `left` and `width` in percent of the picture, and its number of a colour."""

    text: str
    colour: int
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The scores of one cluster; `text` tells them to readers who do not see the picture."""

    cluster: str
    total: int
    parts: tuple[Part, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Legend:
    """A plugin with its colour and weight; `is_common`: it scored all clusters alike."""

    plugin: str
    colour: int
    weight: int
    is_common: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars by cluster, and what their colours mean."""

    legend: tuple[Legend, ...]
    bars: Mapping[str, Bar]


def draw(explanation: Mapping[str, Any], rows: Sequence[ClusterRow]) -> Chart:
    """Return the bars of the clusters that have scores."""
    weights = weights_of(explanation)
    scored = [row for row in rows if row.total is not None]
    common = common_scores(scored)
    plugins = sorted(weights, key=lambda plugin: plugin in common)
    colours = {plugin: number % COLOURS for number, plugin in enumerate(weights)}
    longest = max((_length(row, weights) for row in scored), default=0)
    return Chart(
        tuple(Legend(plugin, colours[plugin], weights[plugin], plugin in common) for plugin in plugins),
        {row.name: _bar(row, plugins, weights, colours, longest) for row in scored},
    )


def _length(row: ClusterRow, weights: Mapping[str, int]) -> int:
    return sum(max(0, weights.get(plugin, 1) * score) for plugin, (_, score) in row.scores.items())


def _bar(
    row: ClusterRow, plugins: Sequence[str], weights: Mapping[str, int], colours: Mapping[str, int], longest: int
) -> Bar:
    parts: list[Part] = []
    left = 0.0
    for plugin in plugins:
        if plugin not in row.scores:
            continue
        score = row.scores[plugin][1]
        width = round(100 * max(0, weights[plugin] * score) / longest, 2) if longest else 0.0
        parts.append(Part(score_text(plugin, score, weights), colours[plugin], round(left, 2), width))
        left += width
    text = f"{row.name}: {', '.join(part.text for part in parts)}; total {row.total}"
    return Bar(row.name, row.total or 0, tuple(part for part in parts if part.width), text)
