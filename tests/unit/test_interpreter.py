"""`tools/interpreter.py` takes the interpreter that a shell would take, or one that is clearly faster."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.vectors import ROOT
from tools.interpreter import Interpreter, candidates, choose, probe


def interpreter(name: str, work_s: float) -> Interpreter:
    return Interpreter(f"/{name}/bin/python3", name, work_s)


@pytest.mark.parametrize(
    ("times_s", "expected"), [([1.0], 0), ([1.0, 0.95], 0), ([1.0, 0.8], 1), ([1.0, 0.8, 0.7], 2), ([0.7, 1.0], 0)]
)
def test_another_interpreter_is_taken_only_if_it_is_clearly_faster(times_s: list[float], expected: int) -> None:
    found = [interpreter(f"3.{11 + index}", work_s) for index, work_s in enumerate(times_s)]
    chosen, reason = choose(found)
    assert chosen is found[expected]
    assert bool(reason) == (expected > 0)
    if reason:
        assert chosen.path in reason
        assert found[0].path in reason


def test_the_first_on_the_path_comes_first(tmp_path: Path) -> None:
    for folder, name in (("a", "python3.12"), ("b", "python3"), ("b", "python3.12")):
        file = tmp_path / folder / name
        file.parent.mkdir(exist_ok=True)
        file.touch(0o755)
    managed = tmp_path / ".pyenv" / "versions" / "3.12.1" / "bin" / "python3"
    managed.parent.mkdir(parents=True)
    managed.touch(0o755)
    found = candidates(f"{tmp_path / 'a'}:{tmp_path / 'b'}", tmp_path)
    assert found[:2] == [str(tmp_path / "b" / "python3"), str(tmp_path / "a" / "python3.12")]
    assert found[-1] == str(managed)


def test_what_is_no_suitable_interpreter_is_passed_over(tmp_path: Path) -> None:
    for text in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no Python\n", "nothing"):
        file = tmp_path / "python3"
        file.write_text(text)
        file.chmod(0o755)
        assert probe(str(file)) is None
    assert probe(str(tmp_path / "missing")) is None


def test_an_environment_stands_for_the_interpreter_it_was_made_of() -> None:
    found = probe(sys.executable)
    assert found is not None
    assert found.version == sys.version.split()[0]
    assert not found.path.startswith(sys.prefix)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let processes that start in the block die of SIGINT; those of a shell's background job ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\nkill -INT $PPID\nsleep 5\n")
    (tmp_path / "python3").chmod(0o755)
    with interruptible():
        done = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "interpreter.py")],
            env={"PATH": f"{tmp_path}:/bin:/usr/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
