"""The benchmarks' own decisions: limits of counted work, the table of goals, and the one line that all end with."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))

import profiles  # noqa: E402
from distance import Delayed  # noqa: E402
from goals import GOALS, RUNS, Goal, Run  # noqa: E402
from measured import BenchmarkFailed, run_benchmark  # noqa: E402
from perfectrollout import shares_of  # noqa: E402
from quick import exceeded  # noqa: E402
from report import print_report  # noqa: E402
from table import to_lines, to_row  # noqa: E402

from federation.planning.steps.strategy import Limits  # noqa: E402

ABSOLUTE = Goal("status", "status", "p50_ms_{size}", 10, "ms")
RELATIVE = Goal("create", "propagation", "makespan_s", 1.25, "s", "bare_s")
RUN = Run("some")


def test_counted_work_above_its_limit_is_named() -> None:
    assert exceeded({"writes": 5.01, "reads": 3}, {"writes": 5, "reads": 3}) == ["writes: 5.01, the limit is 5"]


@pytest.mark.parametrize(
    ("limits", "members", "shares"),
    [
        (Limits(2, 1), 3, [Limits(1, 0), Limits(1, 0), Limits(0, 1)]),
        (Limits(1, 0), 3, [Limits(1, 0)]),
        (Limits(3, 2), 2, [Limits(2, 1), Limits(1, 1)]),
    ],
)
def test_the_shares_of_a_perfect_rollout_are_together_the_limits_of_all(limits, members, shares) -> None:
    assert shares_of(limits, members) == shares


def test_a_limit_of_something_that_is_not_measured_fails() -> None:
    assert exceeded({}, {"writes": 5}) == ["writes: not measured; remove it from the limits, or measure it again"]


def test_every_benchmark_ends_with_name_parameters_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    print_report("some", {"objects": 3}, {"p50_ms": 1.23456, "count": 2}, {"p50_ms": ("<=", 1.0), "other": (">=", 1)})
    *goals, line = capsys.readouterr().out.splitlines()
    assert [goal.split()[-1] for goal in goals] == ["MISSED"]
    found = json.loads(line)
    assert set(found) == {"name", "parameters", "results"}
    assert found["results"] == {"p50_ms": 1.2346, "count": 2}


def test_the_median_of_all_turns_decides() -> None:
    turns = [{"p50_ms_30": 9.0}, {"p50_ms_30": 30.0}, {"p50_ms_30": 10.0}]
    row = to_row(ABSOLUTE, RUN, "30", turns)
    assert (row.values, row.verdict) == ((9.0, 30.0, 10.0), "met")
    assert to_row(ABSOLUTE, RUN, "30", turns[1:2]).verdict == "MISSED"


def test_a_ratio_compares_with_the_bare_client_of_the_same_turn() -> None:
    row = to_row(RELATIVE, RUN, "", [{"makespan_s": 2.0, "bare_s": 2.0}, {"makespan_s": 6.0, "bare_s": 3.0}])
    assert (row.ratios, row.verdict) == ([1.0, 2.0], "MISSED")


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        (["it failed"], "it failed"),
        ([{"other": 1}], "some.py has no result makespan_s"),
        ([{"makespan_s": 1}], "some.py has no result bare_s"),
    ],
)
def test_a_goal_without_a_result_says_why(turns: list[object], problem: str) -> None:
    assert to_row(RELATIVE, RUN, "", turns).problem == problem  # type: ignore[arg-type]


def test_the_table_has_a_line_per_goal_with_result_and_ratio() -> None:
    rows = [
        to_row(ABSOLUTE, RUN, "30", [{"p50_ms_30": 5.0}]),
        to_row(RELATIVE, RUN, "", [{"makespan_s": 300.0, "bare_s": 200.0}]),
        to_row(RELATIVE, RUN, "", ["there is no some.py"]),
    ]
    head, *lines = [line.split() for line in to_lines(rows, 1)]
    assert head == ["what", "goal", "bare", "client", "result", "ratio"]
    assert lines[0] == ["status", "<=", "10", "ms", "5", "ms", "0.50", "met"]
    assert lines[1] == ["create", "<=", "1.25", "x", "bare", "200", "s", "300", "s", "1.50", "MISSED"]
    assert lines[2][-2:] == ["not", "measured"]


def test_every_goal_belongs_to_a_run_and_every_limit_is_a_number() -> None:
    assert {goal.run for goal in GOALS} == set(RUNS)
    limits = json.loads((FOLDER / "limits.json").read_text())
    assert limits
    assert all(isinstance(limit, int | float) for limit in limits.values())


def test_a_benchmark_that_fails_is_named_with_its_last_line() -> None:
    with pytest.raises(BenchmarkFailed, match=r"store\.py ended with exit code 2: .*--nonsense"):
        run_benchmark("store", ("--nonsense",))


def test_a_profile_has_the_median_ratio_of_its_turns_and_no_figure_without_any() -> None:
    def turn(**results: float) -> dict[str, dict[str, float]]:
        return {"propagation": results}

    light = [turn(makespan_s=2.0, bare_client_s=1.0), turn(makespan_s=4.0, bare_client_s=1.0), {}]
    table = profiles.to_lines({"light": light, "far": [{}]})
    assert table[0].split()[-3:] == ["goal", "light", "far"]
    assert table[1].split()[-3:] == ["1.25", "3.00", "-"]
    results = profiles.to_results({"light": light})
    assert results["light_propagation_makespan_s_ratio_min"] == 2.0
    assert results["light_propagation_makespan_s"] == [2.0, 4.0]


@pytest.mark.real_time
async def test_a_proxy_at_a_distance_delays_and_keeps_order_and_ends() -> None:
    received: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(10))
        writer.write(b"first ")
        await writer.drain()
        writer.write(b"second")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    target = ("127.0.0.1", server.sockets[0].getsockname()[1])
    proxy = await loop.create_server(lambda: Delayed(0.02, target), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.sockets[0].getsockname()[1])
    began_s = loop.time()
    for _ in range(5):
        writer.write(b"ab")
        await writer.drain()
    assert await reader.read() == b"first second"
    assert loop.time() - began_s >= 0.04
    assert received == [b"ab" * 5]
    writer.close()
    for each in (server, proxy):
        each.close()
