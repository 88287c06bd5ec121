"""The part of `fedctl why` about subsets of a WorkloadSpread."""

import io

from rich.console import Console

from federation.terminal.decisionview import print_scores


def test_quotas_are_printed_by_subset_and_cluster() -> None:
    subsets = {
        "name": "web",
        "caps": {"base": 4, "idle": 2},
        "quotas": {"base": {"east": 3, "west": 1}, "all": {"west": 5}},
        "running": {"east": {"base": 3}},
    }
    steps = [{"step": "subsets", "quotas": subsets["quotas"]}]
    output = io.StringIO()
    print_scores(Console(file=output, width=200), {"division": {"steps": steps, "subsets": subsets}})
    lines = [line.strip() for line in output.getvalue().splitlines()]
    assert "base: east 3, west 1 (at most 4)" in lines
    assert "idle: none (at most 2)" in lines
    assert "all: west 5" in lines
    assert lines[-1] == "east has no nodes for more than 3 of base"
