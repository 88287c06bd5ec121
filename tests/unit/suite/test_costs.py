"""CPU time is measured with that of child processes, and a record orders the tests of a run."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

import pytest
from tests.support.suite.costs import NOISE, SLOW_S, Cost, Meter, Record, by_folder, save, unexplained
from tests.support.suite.summary import main
from tests.support.suite.tiers import longest_first

BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_the_cpu_time_of_an_ended_child_counts() -> None:
    meter = Meter()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert meter.read(is_checked=False).cpu_s >= 0.25


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
def test_the_cpu_time_of_a_running_child_counts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{BURN}print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        meter = Meter()
        assert child.stdout is not None
        child.stdout.readline()
        assert meter.read(is_checked=False).cpu_s >= 0.2
        child.communicate("\n")


def test_idle_time_is_no_cpu_time() -> None:
    meter = Meter()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-S", "-c", "import select; select.select([], [], [], 0.3)"], check=True)
    cost = meter.read(is_checked=True)
    assert cost.is_checked
    assert cost.wall_s >= 0.3
    assert cost.cpu_s < time.perf_counter() - began


def test_a_cheap_test_has_the_mean_of_its_module() -> None:
    file = "tests/unit/test_a.py"
    record = Record({file: {"cpu_s": 9.0, "wall_s": 10.0, "tests": 5}}, {f"{file}::test_dear": [5.0, 6.0]})
    assert record.cost_of(f"{file}::test_dear") == Cost(5.0, 6.0)
    assert record.cost_of(f"{file}::test_cheap") == Cost(1.0, 1.0)
    assert record.cost_of("tests/unit/test_new.py::test_x") == Cost(0.0, 0.0)


def test_costs_are_added_up_by_folder() -> None:
    costs = {f"tests/{name}::t": Cost(1.5, 2.0) for name in ("unit/a.py", "unit/b.py", "e2e/c.py")}
    assert by_folder(costs) == {"unit": (2, 3.0), "e2e": (1, 1.5)}


def test_long_groups_come_first_and_short_tests_keep_their_order(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.session.items if item.nodeid.startswith("tests/unit/suite/test_costs.py")][:3]
    last = items[-1].nodeid
    assert longest_first(items, Record(tests={last: [9.0, 9.0]}))[0] is items[-1]
    assert longest_first(items, Record()) == items


def test_long_tests_that_wait_alternate_with_those_that_use_the_processor(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.session.items if item.nodeid.startswith("tests/unit/suite/test_costs.py")][:5]
    costs = ([1.0, 40.0], [1.0, 30.0], [20.0, 22.0], [15.0, 20.0], [0.1, 0.1])
    record = Record(tests={item.nodeid: cost for item, cost in zip(items, costs, strict=True)})
    waits, waits_too, works, works_too, short = items
    assert longest_first(items, record) == [waits, works, works_too, waits_too, short]


DEAR = SLOW_S * NOISE + 0.1
HERE = "tests/unit/suite/test_costs.py"
THERE = "tests/unit/suite/test_affected.py"


@pytest.mark.parametrize(
    ("cost", "is_named"),
    [
        pytest.param(Cost(DEAR, 0.0), True, id="dear"),
        pytest.param(Cost(DEAR, 0.0, has_reason=True), False, id="dear with a reason"),
        pytest.param(Cost(SLOW_S * NOISE, 9.0), False, id="within the noise, however long it waits"),
    ],
)
def test_dear_tests_without_a_reason_are_named(cost: Cost, *, is_named: bool) -> None:
    assert unexplained({"t": cost}) == ["t"] * is_named


def run_of(path: Path, costs: Mapping[str, Cost]) -> Path:
    """Write what a run leaves."""
    path.write_text(json.dumps({name: astuple(cost) for name, cost in costs.items()}))
    return path


def test_nothing_is_recorded_while_a_dear_test_has_no_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "costs.json"
    run = run_of(tmp_path / "run", {f"{HERE}::a": Cost(DEAR, 5.0), f"{HERE}::b": Cost(0.1, 0.1)})
    assert main(run, record) == 1
    assert not record.exists()
    printed = capsys.readouterr().err
    assert f"{HERE}::a" in printed
    assert f"{HERE}::b" not in printed
    assert "@pytest.mark.slow" in printed
    assert main(run_of(run, {f"{HERE}::a": Cost(DEAR, 5.0, has_reason=True)}), record) == 0
    assert Record.load(record).tests == {f"{HERE}::a": [3.1, 5.0]}


def test_a_part_of_a_module_does_not_replace_the_costs_of_the_whole(tmp_path: Path) -> None:
    record = tmp_path / "costs.json"
    whole = {f"{HERE}::a": Cost(2.0, 2.0), f"{HERE}::b": Cost(1.0, 1.0), f"{THERE}::c": Cost(1.0, 1.0)}
    save(whole, is_whole=True, path=record)
    save({f"{HERE}::a": Cost(0.1, 0.1)}, is_whole=False, path=record)
    found = Record.load(record)
    assert found.tests == {f"{HERE}::b": [1.0, 1.0], f"{THERE}::c": [1.0, 1.0]}
    assert found.cpu_s(HERE) == 3.0
    save({f"{HERE}::a": Cost(0.1, 0.1), f"{HERE}::d": Cost(0.2, 0.2)}, is_whole=False, path=record)
    found = Record.load(record)
    assert found.tests == {f"{THERE}::c": [1.0, 1.0]}
    assert found.cpu_s(HERE) == pytest.approx(0.3)


def test_what_a_whole_run_did_not_have_is_forgotten(tmp_path: Path) -> None:
    record = tmp_path / "costs.json"
    save({f"{HERE}::a": Cost(2.0, 2.0)}, is_whole=True, path=record)
    save({f"{THERE}::c": Cost(1.0, 1.0)}, is_whole=True, path=record)
    assert set(Record.load(record).files) == {THERE}
