"""A command that lasts says what it is doing, on standard error; one that ends soon says nothing."""

import contextlib
import io
import threading

import pytest

from federation.terminal.progress import Progress


class Stream(io.StringIO):
    """Tells when a line was printed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_flushed = threading.Event()

    def flush(self) -> None:
        """Tell that a line was printed."""
        self.is_flushed.set()


def test_a_quick_command_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(interval_s=60) as progress:
        progress.report("checking")
    assert capsys.readouterr() == ("", "")


def test_the_latest_is_printed_once_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.print_latest()
    progress.report("checking")
    progress.report("copying\nobjects: 500")
    progress.print_latest()
    progress.print_latest()
    assert capsys.readouterr() == ("", "fedctl: copying objects: 500 …\n")
    progress.report("waiting")
    progress.print_latest()
    assert capsys.readouterr() == ("", "fedctl: waiting …\n")


def test_it_is_printed_while_the_work_lets_nothing_else_run() -> None:
    stream = Stream()
    with contextlib.redirect_stderr(stream), Progress(interval_s=0.01) as progress:
        progress.report("copying objects: 500")
        assert stream.is_flushed.wait(60)
    assert stream.getvalue() == "fedctl: copying objects: 500 …\n"


def test_a_failure_ends_it() -> None:
    with pytest.raises(ValueError, match="wrong"), Progress(interval_s=0.01):
        raise ValueError("wrong")
    assert not any(thread.name == "progress" for thread in threading.enumerate())
