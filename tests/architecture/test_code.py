"""House rules that linters cannot check, checked on every module's syntax tree. A failure lists each place.

Limits of size are for a file and a function, and there is none for the whole: docs/decisions/0200.
"""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest
from tests.support.clocks import IN_MEMORY, MEASURES, REASONS
from tests.support.sources import Source, product, sources, suite

pytestmark = pytest.mark.xdist_group("syntax trees")

PURE = ("federation/api", "federation/planning", "federation/scheduling", "plugins/federation_plugins")
PURE_IN_WINGS = re.compile(r"federation/features/\w+/(rules/\w+|rules|names)\.py")

MAY_CATCH_EVERYTHING = {
    "federation/apimachinery/tasks.py": "a failed loop is logged, counted and restarted",
    "federation/runtime/controller.py": "a failed reconcile is logged, counted and retried",
    "federation/runtime/handlers.py": "one listener that broke must not keep the others from hearing of changes",
    "federation/scheduling/engine.py": "whatever a stranger's plugin raises is that plugin's failure",
    "federation/features/queues/rules/faults.py": "an error about one job is that job's; it must not stop all queues",
    "federation/features/queues/reconcile.py": "the same, for what is written about one job",
    "federation/apiserver/http/app.py": "a failed handler is answered with a 500 Status, logged and counted",
}
"""Modules that can use `except Exception`, and the reason."""

LINES_MAX = 450
TEST_LINES_MAX = 650
"""A test module is a list of cases and can be longer than code."""
FUNCTION_LINES_MAX = 80
RECONCILE_LINES_MAX = 60


def _pure() -> list[Source]:
    wings = (source for source in sources("federation/features") if PURE_IN_WINGS.fullmatch(source.name))
    return [*sources(*PURE), *wings]


def _none(found: Iterable[str]) -> None:
    listed = sorted(set(found))
    assert not listed, "\n" + "\n".join(listed)


def _at(source: Source, line: int, what: str) -> str:
    return f"{source.name}:{line} {what}"


def test_every_module_has_a_docstring() -> None:
    def sentences() -> Iterable[str]:
        for source in product():
            docstring = ast.get_docstring(source.tree)
            if docstring is None and source.text.strip():
                yield f"{source.name} has no docstring"
            elif docstring is not None and not re.search(r"\w[^.]*[.!?:)]", docstring):
                yield f"{source.name}'s docstring is no sentence: {docstring!r}"

    _none(sentences())


def test_wire_names_are_defined_in_one_place() -> None:
    """Labels, annotations and finalizers are constants of api/names.py, or of names.py of the package that owns them."""
    allowed = {"federation/api/resources.py"}
    allowed |= {source.name for source in sources("federation") if source.name.endswith("/names.py")}
    _none(
        _at(source, line, repr(text[:80]))
        for source in sources("federation", "plugins/federation_plugins")
        if source.name not in allowed and source.has("kubeadmiral.io/")
        for line, text in source.strings()
        if "kubeadmiral.io/" in text and not _is_api_version(text)
    )


def _is_api_version(text: str) -> bool:
    return re.fullmatch(r"[a-z.]*kubeadmiral\.io/v\d+(alpha\d+|beta\d+)?", text) is not None


def test_pure_layers_read_no_clock_no_randomness_and_no_files() -> None:
    forbidden = re.compile(
        r"(datetime\.(datetime\.)?(now|utcnow|today)|date\.today|time\.\w+|random\.\w+|secrets\.\w+|uuid\.uuid[14]"
        r"|os\.\w+|open|input|print|asyncio\.\w+|subprocess\.\w+|socket\.\w+|Path)$"
    )
    generated = {"federation/api/crds.py": "reads the generated CRD manifests that are shipped beside it"}
    _none(
        _at(source, line, f"calls {name}")
        for source in _pure()
        if source.name not in generated
        for line, name in source.calls()
        if forbidden.match(name)
    )


def test_pure_layers_do_not_log() -> None:
    _none(
        _at(source, node.lineno, "imports a logger")
        for source in _pure()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any("structlog" in alias.name or alias.name == "logging" for alias in node.names)
    )


def test_only_listed_modules_catch_everything() -> None:
    def catches(handler: ast.ExceptHandler) -> bool:
        named = ast.walk(handler.type) if handler.type is not None else ()
        return handler.type is None or any(
            isinstance(node, ast.Name) and node.id in ("Exception", "BaseException") for node in named
        )

    def reraises(handler: ast.ExceptHandler) -> bool:
        return isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None

    handlers = [
        (source, node)
        for source in product()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and catches(node) and not reraises(node)
    ]
    _none(
        _at(source, node.lineno, "catches everything")
        for source, node in handlers
        if source.name not in MAY_CATCH_EVERYTHING
    )
    gone = set(MAY_CATCH_EVERYTHING) - {source.name for source, _ in handlers}
    assert not gone, f"allowed to catch everything, and does not: {sorted(gone)}"


def test_suppressions_name_a_rule() -> None:
    """`# noqa` and `# type: ignore` carry a code; in the product also a reason, once per block of equal lines."""

    def unspecific() -> Iterable[str]:
        for source in (*product(), *suite()):
            if not source.has("noqa|type: *ignore|mypy:|ruff:"):
                continue
            for line, comment in source.comments():
                if re.search(r"#\s*noqa(?!:\s*[A-Z]+\d+)", comment):
                    yield _at(source, line, f"{comment}: which rule?")
                if re.search(r"#\s*type:\s*ignore(?!\[[a-z-]+)", comment):
                    yield _at(source, line, f"{comment}: which error?")
                if re.search(r"#\s*(mypy|ruff):\s*(ignore-errors|noqa)", comment):
                    yield _at(source, line, f"{comment}: a whole file")

    _none(unspecific())


def test_no_unfinished_work_is_marked() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

    def left() -> Iterable[str]:
        for source in (*product(), *suite(), *sources("tools", "benchmarks", "migrations")):
            if source.name == "tests/architecture/test_code.py" or not source.has(
                rf"{words.pattern}|NotImplementedError"
            ):
                continue
            for line, comment in source.comments():
                if words.search(comment):
                    yield _at(source, line, comment)
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                    yield _at(source, node.lineno, "NotImplementedError")

    _none(left())


def test_tests_use_no_mocks() -> None:
    def mocked() -> Iterable[str]:
        for source in suite():
            for node in ast.walk(source.tree) if source.has("mock|monkeypatch") else ():
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                if any(name.startswith(("unittest.mock", "mock", "pytest_mock")) for name in names):
                    yield _at(source, node.lineno, "imports a mock")
                elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("monkeypatch."):
                    verb, target = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
                    is_foreign = target.startswith(("'", '"')) and "federation" not in target
                    if verb.endswith("attr") and not is_foreign:
                        yield _at(source, node.lineno, f"{verb} of {target}: seams of ours are parameters")

    _none(mocked())


def test_the_product_never_imports_tests_or_the_test_harness_of_plugins() -> None:
    _none(
        _at(source, node.lineno, f"imports {node.module}")
        for source in product()
        if not source.name.startswith("plugins/examples")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and (node.module.split(".")[0] == "tests" or node.module == "federation.scheduling.framework.testing")
    )


def test_no_test_calls_time_sleep() -> None:
    """Time is virtual; tests that wait on the wall clock carry the marker `real_time`, `slow` or `e2e`."""
    _none(
        _at(source, line, "sleeps")
        for source in suite()
        if not source.name.startswith(("tests/e2e/", "tests/support/")) and source.has(r"\bsleep\b")
        for line, call in source.calls()
        if call == "time.sleep"
    )


_MEASURING = (
    "tests/support/",
    "tests/mutation/",
    "tests/unit/suite/test_costs.py",
    "tests/unit/apimachinery/test_profiler.py",
)
"""Where CPU time is read: the meters, and their own tests."""


def test_only_the_meter_measures_cpu_time_against_a_limit() -> None:
    """A plain stopwatch also measures the neighbours, the machine's age and the collector: see `tests.support.cputime`."""
    _none(
        _at(source, line, f"calls {call}(); use tests.support.cputime")
        for source in suite()
        if not source.name.startswith(_MEASURING) and source.has(r"process_time|thread_time|perf_counter")
        for line, call in source.calls()
        if call.rpartition(".")[2] in ("process_time", "thread_time", "perf_counter")
    )


def test_reconciles_and_functions_stay_short() -> None:
    def long() -> Iterable[str]:
        for source in product():
            for function in source.functions():
                length = (function.end_lineno or function.lineno) - function.lineno + 1
                limit = RECONCILE_LINES_MAX if "reconcile" in function.name else FUNCTION_LINES_MAX
                if length > limit:
                    yield _at(source, function.lineno, f"{function.name} has {length} lines, at most {limit}")

    _none(long())


def test_modules_stay_short() -> None:
    limits = [(source, LINES_MAX) for source in product()] + [(source, TEST_LINES_MAX) for source in suite()]
    _none(
        f"{source.name} has {source.lines} lines, at most {limit}" for source, limit in limits if source.lines > limit
    )


def test_no_module_basename_occurs_more_than_twice() -> None:
    """A reader who searches for a module by name finds one place, or two."""
    repeated = {"__init__", "__main__", "controller", "reconcile", "admission", "model", "names", "rules", "command"}
    found: dict[str, list[str]] = {}
    for source in product():
        found.setdefault(source.name.rpartition("/")[2].removesuffix(".py"), []).append(source.name)
    offenders = {name: places for name, places in found.items() if len(places) > 2 and name not in repeated}
    _none(f"{name}: {', '.join(places)}" for name, places in offenders.items())


_NO_CONTROL_PLANE = ("apiserver/", "simulator/", "twin/")
"""A server, simulated clusters, and copies of a fleet."""


def _control_plane() -> Iterator[tuple[str, Source]]:
    for source in product():
        name = source.name.removeprefix("federation/")
        if name != source.name and not name.startswith(_NO_CONTROL_PLANE):
            yield name, source


def _measures(source: Source) -> bool:
    calls = (node.func for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr in MEASURES for called in calls)


def test_each_clock_has_a_reason() -> None:
    listed = [name for names in REASONS.values() for name in names]
    assert len(listed) == len(set(listed))
    found = {name for name, source in _control_plane() if source.has(r"monotonic|total_seconds") and _measures(source)}
    assert found - set(listed) == set(), "count with Silence, Patience, Wait or Presence.present_s, or list the reason"
    assert set(listed) - found == set(), "it measures no time any more"


def test_waits_in_memory_stand_still_with_the_process() -> None:
    assert {name for name, source in _control_plane() if source.has(r"\.present_s\b")} == set(IN_MEMORY)
