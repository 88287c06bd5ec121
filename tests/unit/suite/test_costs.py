"""CPU time is measured with that of child processes, and a record orders the tests of a run."""

import subprocess
import sys
import time

import pytest
from tests.support.suite.costs import Cost, Meter, Record, by_folder
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
    assert record.wall_s(f"{file}::test_dear") == 6.0
    assert record.wall_s(f"{file}::test_cheap") == 1.0
    assert record.wall_s("tests/unit/test_new.py::test_x") == 0.0


def test_costs_are_added_up_by_folder() -> None:
    costs = {f"tests/{name}::t": Cost(1.5, 2.0) for name in ("unit/a.py", "unit/b.py", "e2e/c.py")}
    assert by_folder(costs) == {"unit": (2, 3.0), "e2e": (1, 1.5)}


def test_long_groups_come_first_and_short_tests_keep_their_order(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.session.items if item.nodeid.startswith("tests/unit/suite/test_costs.py")][:3]
    last = items[-1].nodeid
    assert longest_first(items, Record(tests={last: [9.0, 9.0]}))[0] is items[-1]
    assert longest_first(items, Record()) == items
