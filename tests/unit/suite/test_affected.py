"""A change reaches the tests that need it, the closest first, and the limit leaves out the farthest."""

import functools
import itertools

import pytest
from tests.support.suite.affected import Choice, arguments, choose
from tests.support.suite.costs import Record
from tests.support.suite.importgraph import ImportGraph

DIVISION = "federation/planning/placement/replicas.py"
UNIT = "tests/unit/planning/placement/test_replicas.py"
SCENARIO = "tests/scenarios/test_first_propagation.py"
BUDGETS = "tests/architecture/test_budgets.py"


reads_all_files = pytest.mark.slow("the import graph parses all files once")


@functools.cache
def graph() -> ImportGraph:
    """Return the graph of this checkout, read once."""
    return ImportGraph()


@reads_all_files
def test_a_changed_module_reaches_its_unit_test_before_a_whole_world() -> None:
    distances = graph().distances([DIVISION])
    assert distances[UNIT] == 1 < distances[SCENARIO]


@reads_all_files
def test_a_page_reaches_the_test_that_runs_its_commands() -> None:
    assert "tests/e2e/test_walkthroughs.py" in graph().distances(["docs/rollout.md"])


@reads_all_files
@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("docs/scheduling.md", "tests/unit/test_pages.py"),
        ("examples/quickstart/03-nginx.yaml", "tests/conformance/test_examples.py"),
        ("plugins/examples/business_rules.py", "tests/unit/plugins/test_examples.py"),
        ("tests/conformance/vectors/test_planner.py", "tests/conformance/vectors/test_optional_keys.py"),
    ],
)
def test_a_file_reaches_the_test_that_reads_its_folder(changed: str, test: str) -> None:
    assert graph().distances([changed]).get(test) == 1


@reads_all_files
def test_a_page_does_not_reach_tests_that_name_other_pages_of_its_folder() -> None:
    assert "tests/e2e/test_walkthroughs.py" not in graph().distances(["docs/glossary.md"])


@reads_all_files
@pytest.mark.parametrize("changed", ["docs/glossary.md", DIVISION, "tests/costs.json", UNIT, "Makefile"])
def test_every_change_reaches_the_tests_that_read_all_files(changed: str) -> None:
    assert BUDGETS in graph().distances([changed])
    assert BUDGETS not in graph().distances([])


@reads_all_files
def test_a_module_that_runs_as_a_process_reaches_the_tests_that_start_it() -> None:
    assert "tests/e2e/test_demo.py" in graph().distances(["federation/cli/main.py"])


@reads_all_files
def test_a_plugin_reaches_tests_of_whole_worlds() -> None:
    assert SCENARIO in graph().distances(["plugins/federation_plugins/taint_toleration.py"])


@reads_all_files
def test_a_changed_conftest_reaches_every_test_of_its_folder() -> None:
    distances = graph().distances(["tests/conformance/registry/conftest.py"])
    assert "tests/conformance/registry/test_create.py" in distances
    assert UNIT not in distances


@reads_all_files
def test_a_changed_package_reaches_the_tests_of_its_modules() -> None:
    assert UNIT in graph().distances(["federation/planning/placement/__init__.py"])


@reads_all_files
def test_a_unit_test_of_another_package_is_not_reached() -> None:
    reached = graph().distances(["federation/features/waves/reconcile.py"])
    assert SCENARIO in reached
    assert UNIT not in reached


@reads_all_files
def test_a_test_reaches_what_a_shared_fixture_imports_for_it() -> None:
    reached = graph().distances(["tests/support/shared.py"])
    assert "tests/e2e/test_user_flows.py" in reached
    assert UNIT not in reached


def test_the_closest_tests_run_within_the_budget_and_the_others_are_named() -> None:
    record = Record({name: {"cpu_s": 40.0, "wall_s": 40.0, "tests": 1} for name in (UNIT, SCENARIO)})
    choice = choose({SCENARIO: 4, UNIT: 1, DIVISION: 0}, record, budget_cpu_s=60)
    assert (choice.runs, choice.left) == ([UNIT], [SCENARIO])
    assert choose({SCENARIO: 4, UNIT: 1}, record, budget_cpu_s=None).runs == [UNIT, SCENARIO]


def test_a_changed_test_runs_whatever_it_costs() -> None:
    record = Record({SCENARIO: {"cpu_s": 400.0, "wall_s": 400.0, "tests": 1}})
    assert choose({SCENARIO: 0}, record, budget_cpu_s=60).runs == [SCENARIO]


def test_tests_that_read_all_files_run_although_there_is_no_room() -> None:
    record = Record({name: {"cpu_s": 9.0, "wall_s": 9.0, "tests": 1} for name in (UNIT, SCENARIO, BUDGETS)})
    choice = choose({UNIT: 1, BUDGETS: 1, SCENARIO: 1}, record, budget_cpu_s=1)
    assert choice.runs == [BUDGETS]
    assert choice.left == [SCENARIO, UNIT]


def test_pytest_visits_each_folder_once() -> None:
    runs = ["tests/unit/b/test_1.py", "tests/e2e/test_2.py", "tests/unit/test_3.py", "tests/unit/b/test_4.py"]
    named = arguments(Choice(runs, [], 1.0, 0.0))
    folders = [name.rpartition("/")[0] for name in named]
    assert set(named) == set(runs)
    assert [name for name, _ in itertools.groupby(folders)] == ["tests/e2e", "tests/unit/b", "tests/unit"]


def test_only_a_long_choice_is_divided_among_workers() -> None:
    assert "-n" in arguments(Choice([UNIT], [], 50.0, 0.0))
    assert "-n" not in arguments(Choice([UNIT], [], 5.0, 0.0))
