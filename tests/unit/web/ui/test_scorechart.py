"""Scores as bars."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.explanations import rows
from federation.web.ui.scorechart import Chart, draw

PLUGINS = {"Taints": 1, "Resources": 2, "Affinity": 1}


def a_chart(scores: dict[str, dict[str, int]]) -> Chart:
    """Return the chart of scores by cluster and plugin."""
    names = list(scores)
    totals = [sum(PLUGINS[plugin] * score for plugin, score in scores[name].items()) for name in names]
    plugins = [
        {"plugin": plugin, "weight": weight, "raw": values, "normalised": values}
        for plugin, weight in PLUGINS.items()
        for values in [[scores[name][plugin] for name in names]]
    ]
    explanation: dict[str, Any] = {
        "clusters": names,
        "scores": {"clusters": names, "plugins": plugins, "totals": totals},
    }
    return draw(explanation, rows(explanation))


def test_the_longest_bar_fills_the_picture_and_common_scores_come_last() -> None:
    chart = a_chart(
        {"a": {"Taints": 100, "Resources": 50, "Affinity": 0}, "b": {"Taints": 100, "Resources": 0, "Affinity": 0}}
    )
    assert [(each.plugin, each.weight, each.is_common) for each in chart.legend] == [
        ("Resources", 2, False),
        ("Taints", 1, True),
        ("Affinity", 1, True),
    ]
    assert [(part.left, part.width) for part in chart.bars["a"].parts] == [(0.0, 50.0), (50.0, 50.0)]
    assert [(part.left, part.width) for part in chart.bars["b"].parts] == [(0.0, 50.0)]
    assert chart.bars["a"].text == "a: Resources 2 * 50, Taints 100, Affinity 0; total 200"


def test_without_scores_there_is_no_picture() -> None:
    chart = draw({"clusters": ["a"], "rejected": {"a": {"plugin": "P", "reasons": ["no"]}}}, [])
    assert (chart.legend, chart.bars) == ((), {})


SCORES = st.fixed_dictionaries({plugin: st.integers(0, 100) for plugin in PLUGINS})


@given(st.dictionaries(st.sampled_from("abcdef"), SCORES, min_size=1))
def test_bars_stay_within_the_picture_in_proportion_to_totals(scores: dict[str, dict[str, int]]) -> None:
    chart = a_chart(scores)
    longest = max(bar.total for bar in chart.bars.values())
    for bar in chart.bars.values():
        ends = [part.left + part.width for part in bar.parts]
        assert all(abs(end - after.left) < 0.05 for end, after in zip(ends, bar.parts[1:], strict=False))
        assert max(ends, default=0.0) <= 100.05
        if longest:
            assert abs(max(ends, default=0.0) - 100 * bar.total / longest) < 0.1
