"""The mutation run's own rules: what is mutated, how, and what is left alone."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mutation.mutations import Mutation, mutations_of
from tests.mutation.reach import Reach, _distance
from tests.mutation.run import Job, chosen_of
from tests.mutation.workers import run_forked
from tests.support.sources import ROOT

EQUIVALENT = ROOT / "tests/mutation/equivalent.txt"

SOURCE = '''
LIMIT = 3

def f(a, b, log, rest=2):
    """Docstring 7."""
    log.info("x", code=1)
    if a < b and not rest:
        return None
    a.count += 1
    a.call(b, key=a)
    assert a != 5
    return [min(x, 4) for x in b if x] if a else b - 1
'''


def _mutations(tmp_path: Path, source: str) -> set[tuple[str, str, str]]:
    path = tmp_path / "module.py"
    path.write_text(source)
    found = mutations_of(path, "module.py")
    for mutation in found:
        assert ast.dump(ast.parse(mutation.apply(path.read_bytes()))) != ast.dump(ast.parse(source)), mutation
    return {(mutation.kind, mutation.before, mutation.after) for mutation in found}


def test_each_kind_of_mutation_is_one_small_wrong_edit(tmp_path: Path) -> None:
    assert _mutations(tmp_path, SOURCE) == {
        ("constant", "3", "(4)"),
        ("constant", "2", "(3)"),
        ("and/or", "a < b and not rest", "(a < b or not rest)"),
        ("dropped operand", "a < b and not rest", "(a < b)"),
        ("dropped operand", "a < b and not rest", "(not rest)"),
        ("negated condition", "a < b and not rest", "(not (a < b and (not rest)))"),
        ("comparison", "a < b", "(a <= b)"),
        ("removed not", "not rest", "(rest)"),
        ("removed early end", "return None", "pass"),
        ("removed statement", "a.count += 1", "pass"),
        ("constant", "1", "(2)"),
        ("removed statement", "a.call(b, key=a)", "pass"),
        ("dropped keyword", "key=a", "**{}"),
        ("swapped branches", "[min(x, 4) for x in b if x] if a else b - 1",
         "(b - 1 if a else [min(x, 4) for x in b if x])"),
        ("dropped condition", "[min(x, 4) for x in b if x]", "([min(x, 4) for x in b])"),
        ("opposite function", "min(x, 4)", "(max(x, 4))"),
        ("constant", "4", "(5)"),
        ("arithmetic", "b - 1", "(b + 1)"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        '"""Text 3."""\n',
        "def f(x: Literal[3]) -> Literal[4]:\n    raise ValueError(f'{x + 3}')\n",
        "class A:\n    @decorated(slots=True)\n    def f(self):\n        self._log.info(1)\n",
        "def f(x):\n    return 'a' + x\n",
        "def f(x):\n    del x\n",
    ],
)
def test_texts_annotations_decorators_and_logs_stay(tmp_path: Path, source: str) -> None:
    assert _mutations(tmp_path, source) == set()


def test_a_mutation_knows_its_function_and_statement_and_is_named_without_lines(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class A:\n    @x\n    def f(self):\n        if (\n            self.a\n            and 1\n        ):\n            pass\n"
    )
    (found, *_) = [each for each in mutations_of(path, "module.py") if each.kind == "constant"]
    assert (found.place.function, found.place.first_line, found.place.lines, found.line) == ("A.f", 2, (4, 6), 6)
    assert found.key == "module.py A.f: 1 => (2)"
    path.write_text("x = f(3)\n")
    (found,) = mutations_of(path, "module.py")
    assert (found.place.function, found.key) == ("", "module.py -: 3 => (4)")


def test_every_mutation_that_changes_nothing_exists() -> None:
    listed = [line for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    paths = {line.split(" ", maxsplit=1)[0] for line in listed}
    known = {mutation.key for path in paths for mutation in mutations_of(ROOT / path, path)}
    assert [line for line in listed if line not in known] == []
    assert len(set(listed)) == len(listed)


def test_other_code_does_not_move_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("\n".join(f"a{number} = {number}" for number in range(40)))
    before = chosen_of(mutations_of(path, "module.py"), 10, seed=7)
    assert len(before) == 10
    assert [each.key for each in before] != [
        each.key for each in chosen_of(mutations_of(path, "module.py"), 10, seed=8)
    ]
    path.write_text(f"if True:\n    {'pass'}\n\n{path.read_text()}")
    after = chosen_of(mutations_of(path, "module.py"), 10, seed=7)
    assert len({each.key for each in before} & {each.key for each in after}) >= 9


def test_edits_that_share_a_name_are_each_chosen(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("a = [3, 3, 3]\n")
    found = chosen_of(mutations_of(path, "module.py"), 10, seed=7)
    assert sorted(each.start for each in found) == [5, 8, 11]


def test_slow_tests_have_a_budget_that_quick_ones_cannot_use_up(tmp_path: Path) -> None:
    (mutation,) = _one_mutation(tmp_path)
    reach = Reach(tmp_path, [])
    reach.tests = {f"tests/unit/test_{number}.py::test": (1.0, "check", True) for number in range(9)}
    reach.tests["tests/scenarios/test_world.py::test"] = (3.5, "test", True)
    reach.tests["tests/unit/test_broken.py::test"] = (0.1, "check", False)
    reach.add_lines({"module.py": {"1": list(reach.tests)}})
    chosen = reach.tests_of(mutation, budget_s=8, collected=reach.tests)
    assert chosen == [f"tests/unit/test_{number}.py::test" for number in range(3)] + [
        "tests/scenarios/test_world.py::test"
    ]
    constants = replace(mutation, path="constants.py")
    assert reach.tests_of(constants, budget_s=8, collected=reach.tests) == chosen, "its lines ran at import only"
    reach.forget(chosen[0])
    assert reach.tests_of(mutation, budget_s=8, collected=reach.tests)[0] == "tests/unit/test_1.py::test"


def test_the_tests_of_a_plugin_are_close_to_it(tmp_path: Path) -> None:
    (mutation,) = _one_mutation(tmp_path)
    reach = Reach(tmp_path, [])
    reach.tests = {
        "tests/unit/api/test_a.py::test": (1.0, "check", True),
        "tests/unit/plugins/test_b.py::test": (1.0, "check", True),
    }
    plugin = replace(mutation, path="plugins/federation_plugins/cluster_affinity.py")
    reach.add_lines({plugin.path: {"1": list(reach.tests)}})
    assert reach.tests_of(plugin, budget_s=3, collected=reach.tests) == ["tests/unit/plugins/test_b.py::test"]


def test_the_test_in_which_a_process_was_killed_is_known(tmp_path: Path) -> None:
    (mutation,) = _one_mutation(tmp_path)

    def loop_in_second(job: Job) -> str:
        job.begin("second")
        while True:
            pass

    jobs = run_forked([Job(mutation, ["first", "second"])], loop_in_second, workers=1, cpu_s=0, wall_s=60)
    assert [(job.current, answer) for job, answer in jobs] == [("second", None)]


def _one_mutation(tmp_path: Path) -> list[Mutation]:
    path = tmp_path / "module.py"
    path.write_text("a = 3\n")
    return mutations_of(path, "module.py")


def test_the_tests_of_inner_packages_come_first() -> None:
    tests = [
        "tests/unit/features/waves/rules/test_waveplan.py::test_a",
        "tests/unit/features/waves/rules/test_other.py::test_a",
        "tests/unit/features/waves/test_report.py::test_a",
        "tests/unit/features/queues/test_admission.py::test_a",
        "tests/unit/scheduling/test_unit.py::test_a",
        "tests/properties/test_rollout_waves.py::test_a",
        "tests/scenarios/test_rollout_waves.py::test_a",
        "tests/attacks/test_objectives.py::test_a",
    ]
    distances = [_distance(test, "federation/features/waves/rules/waveplan.py") for test in tests]
    assert distances == sorted(set(distances))
    assert _distance("tests/unit/plugins/test_capacity.py::test_a", "plugins/federation_plugins/capacity.py") == 0
