"""Random CEL expressions and JSON patches within the limits of writes neither stall the event loop nor take memory.

An expression that the budget refuses is a success as well; what is measured is the time and the memory of everything
that runs. The runs of 100,000 are `nightly`.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cputime import cpu_s

from federation.apimachinery.errors import ApiError
from federation.apimachinery.jsonpatch import apply_json_patch
from federation.apiserver.semantics.cel.budget import ADMISSION_LIMIT, TENANT_LIMIT
from federation.apiserver.semantics.cel.programs import (
    CompileError,
    EvaluationError,
    OutOfBudget,
    check_cost,
    compile_expression,
)

STALL_S_MAX = 0.1
MEMORY_BYTES_MAX = 64 * 1024 * 1024
FEW, MANY = 400, 100_000
_WINDOW = 1_000
"""Steps whose memory is measured together."""
OBJECT = {
    "metadata": {"name": "web", "labels": {f"label{index}": "x" * 60 for index in range(40)}},
    "spec": {
        "replicas": 3,
        "containers": [{"name": f"c{index}", "image": "registry.example/x:1"} for index in range(20)],
        "numbers": list(range(2000)),
        "nested": [[["a" * 50] * 20] * 20] * 20,
    },
    "status": {"message": "m" * 1_000_000, "words": ["word " * 20] * 5000, "text": "short"},
}
SMALL_OBJECT = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "containers": [{"name": "c", "image": "registry.example/x:1"}],
        "numbers": list(range(40)),
        "nested": [[["a" * 50] * 3] * 3] * 3,
    },
    "status": {"message": "m" * 400, "words": ["word"] * 60, "text": "short"},
}
TEXTS = ("'a'", "'" + "b" * 300 + "'", "object.status.message", "object.status.text", "object.metadata.name", "'%s-%d'")
LISTS = ("object.spec.numbers", "object.status.words", "object.spec.nested", "['x', 'y']", "object.spec.containers")
PATTERNS = ("'a*b'", "'(a|b|ab){1,100}c'", "'^[a-z]+$'", "'(x+x+)+y'")


class Expressions:
    """Makes expressions that mostly compile, with a preference for those that grow."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self) -> str:
        """Return an expression of at most 4096 characters."""
        while len(text := self._bool(self._random.randint(1, 6), ())) > 4096:
            pass
        return text

    def _bool(self, depth: int, names: tuple[str, ...]) -> str:
        if depth <= 0:
            return "true"
        text, listed = lambda: self._text(depth - 1, names), lambda: self._list(depth - 1, names)
        inner = (*names, f"v{len(names)}")
        return self._choose(
            lambda: f"{text()} == {text()}",
            lambda: f"{text()}.contains({text()})",
            lambda: f"{text()}.matches({self._random.choice((*PATTERNS, text()))})",
            lambda: f"{listed()}.{self._random.choice(('all', 'exists'))}({inner[-1]}, {self._bool(depth - 1, inner)})",
            lambda: f"{listed()} == {listed()}",
            lambda: f"{self._int(depth - 1, names)} < {self._int(depth - 1, names)}",
            lambda: f"sets.intersects({listed()}, {listed()})",
            lambda: f"({self._bool(depth - 1, names)} || {self._bool(depth - 1, names)})",
            lambda: f"{text()} in {listed()}",
        )

    def _text(self, depth: int, names: tuple[str, ...]) -> str:
        if depth <= 0:
            return self._random.choice((*TEXTS, *names))
        text, listed = lambda: self._text(depth - 1, names), lambda: self._list(depth - 1, names)
        return self._choose(
            lambda: " + ".join(f"({text()})" for _ in range(self._random.randint(2, 6))),
            lambda: f"{text()}.replace({text()}, {text()})",
            lambda: f"{listed()}.join({text()})",
            lambda: f"{text()}.format([{text()}, {text()}])",
            lambda: f"cel.bind({self._bound(names)}, {text()}, {self._text(depth - 1, (*names, self._bound(names)))})",
            lambda: f"strings.quote({text()})",
            lambda: f"string({self._int(depth - 1, names)})",
            lambda: f"base64.encode(bytes({text()}))",
            lambda: f"{text()}.find({self._random.choice(PATTERNS)})",
            lambda: self._random.choice((*TEXTS, *names)),
        )

    def _list(self, depth: int, names: tuple[str, ...]) -> str:
        if depth <= 0:
            return self._random.choice((*LISTS, *names))
        listed, inner = lambda: self._list(depth - 1, names), (*names, f"v{len(names)}")
        return self._choose(
            lambda: f"{listed()}.map({inner[-1]}, {self._any(depth - 1, inner)})",
            lambda: f"{listed()}.filter({inner[-1]}, {self._bool(depth - 1, inner)})",
            lambda: f"({listed()} + {listed()})",
            lambda: f"[{', '.join(self._any(depth - 1, names) for _ in range(self._random.randint(1, 8)))}]",
            lambda: f"{self._text(depth - 1, names)}.split({self._random.choice(TEXTS)})",
            lambda: f"{self._text(depth - 1, names)}.findAll({self._random.choice(PATTERNS)})",
            lambda: (
                f"cel.bind({self._bound(names)}, {listed()}, {self._list(depth - 1, (*names, self._bound(names)))})"
            ),
        )

    def _int(self, depth: int, names: tuple[str, ...]) -> str:
        if depth <= 0:
            return self._random.choice(("1", "object.spec.replicas"))
        return self._choose(
            lambda: f"size({self._any(depth - 1, names)})",
            lambda: f"{self._list(depth - 1, names)}.indexOf({self._any(depth - 1, names)})",
            lambda: f"{self._text(depth - 1, names)}.lastIndexOf({self._text(depth - 1, names)})",
        )

    def _any(self, depth: int, names: tuple[str, ...]) -> str:
        return self._choose(lambda: self._text(depth, names), lambda: self._list(depth, names))

    def _choose(self, *made: Callable[[], str]) -> str:
        return self._random.choice(made)()

    @staticmethod
    def _bound(names: tuple[str, ...]) -> str:
        return f"v{len(names)}"


class Watch:
    """The longest step in CPU time, and the largest memory since the start."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.culprit = ""
        self._runs = 0
        self._grown = 0
        self._begin()

    def _begin(self) -> None:
        """Begin a window: the runtime keeps texts that functions in Python got, which would add up over all of them."""
        self._before = self._memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again

    def _end(self) -> None:
        self._grown = max(self._grown, self._memory("VmHWM") - self._before)

    def run(self, step: Callable[[], object], name: str) -> None:
        """Measure one step."""
        self._runs += 1
        if self._runs % _WINDOW == 0:
            self._end()
            self._begin()
        if (taken := cpu_s(step, STALL_S_MAX)[1]) > self.longest_s:
            self.longest_s, self.culprit = taken, name

    def assert_small(self) -> None:
        """Assert both goals."""
        self._end()
        print(f"longest {self.longest_s * 1000:.0f} ms, memory {self._grown / 2**20:.0f} MB: {self.culprit[:300]}")
        assert self._grown < MEMORY_BYTES_MAX
        assert self.longest_s < STALL_S_MAX, self.culprit

    @staticmethod
    def _memory(field: str) -> int:
        (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field)]
        return int(line.split()[1]) * 1024


def search_expressions(count: int, seed: int) -> dict[str, int]:
    """Compile and evaluate random expressions; return how many had which end."""
    compile_expression("true", ("object",)).evaluate({"object": OBJECT})
    random_ = random.Random(seed)
    ends = {"unwritten": 0, "invalid": 0, "refused": 0, "failed": 0, "evaluated": 0}

    def step(text: str) -> None:
        try:
            limit = random_.choice((TENANT_LIMIT, ADMISSION_LIMIT))
            program = compile_expression(text, ("object",), returns="BOOL", limit=limit)
        except CompileError:
            ends["invalid"] += 1
            return
        try:
            check_cost(program)
        except CompileError:
            # What was stored before this limit existed is evaluated as well.
            ends["unwritten"] += 1
        try:
            program.evaluate({"object": random_.choice((OBJECT, SMALL_OBJECT))})
            ends["evaluated"] += 1
        except OutOfBudget:
            ends["refused"] += 1
        except EvaluationError:
            ends["failed"] += 1

    watch, made = Watch(), Expressions(seed)
    for _ in range(count):
        text = made.make()
        watch.run(lambda text=text: step(text), text)  # type: ignore[misc]
    print(ends)
    watch.assert_small()
    return ends


def test_random_expressions_neither_stall_nor_take_memory() -> None:
    ends = search_expressions(FEW, seed=30)
    assert min(ends[end] for end in ("unwritten", "refused", "failed", "evaluated")) > 0, ends


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_100_000_random_expressions_neither_stall_nor_take_memory() -> None:
    search_expressions(MANY, seed=1)


def a_patch(random_: random.Random, paths: list[str]) -> list[dict[str, Any]]:
    """Return up to 400 operations, many of which copy and move what others made."""
    made: list[dict[str, Any]] = []
    known = list(paths)
    for _ in range(random_.choice((1, 5, 40, 400))):
        op = random_.choice(("add", "copy", "copy", "copy", "move", "remove", "replace", "test"))
        path = f"{random_.choice(known)}/{random_.choice(('x', 'y', '-', '0'))}"
        operation: dict[str, Any] = {"op": op, "path": path, "from": random_.choice(known)}
        if op in ("add", "replace", "test"):
            operation["value"] = random_.choice((1, "t" * 1000, [0] * 1000, {}, {"x": {"y": []}}))
        made.append(operation)
        known.append(path)
    return made


def search_patches(count: int, seed: int) -> int:
    """Apply random patches; return how many did apply."""
    random_, watch, applied = random.Random(seed), Watch(), 0
    paths = ["", "/spec", "/spec/numbers", "/status", "/status/words", "/spec/nested", "/metadata/labels"]

    def step(operations: list[dict[str, Any]]) -> None:
        nonlocal applied
        try:
            apply_json_patch(OBJECT, operations)
            applied += 1
        except ApiError:
            pass

    for _ in range(count):
        patch = a_patch(random_, paths)
        watch.run(lambda patch=patch: step(patch), str(patch))  # type: ignore[misc]
    watch.assert_small()
    return applied


def test_random_patches_neither_stall_nor_take_memory() -> None:
    assert search_patches(FEW, seed=30) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_100_000_random_patches_neither_stall_nor_take_memory() -> None:
    search_patches(MANY, seed=1)
