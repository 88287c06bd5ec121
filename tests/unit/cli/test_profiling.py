"""`fedctl serve --profile`: files at SIGUSR1 and at the end, and a clear line for a file that cannot be written."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.cli.profiling import profiled


async def test_the_profile_is_written_at_the_signal_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "profile"
    summary = path.with_name("profile.txt")

    async def work() -> None:
        while not (summary.exists() and "running package" in summary.read_text()):
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.sleep(0)
        summary.unlink()

    await profiled(work(), path)
    assert "running package" in summary.read_text()
    assert all(line.rpartition(" ")[2].isdigit() for line in path.read_text().splitlines())


async def test_a_profile_that_cannot_be_written_is_refused_before_the_start(tmp_path: Path) -> None:
    async def work() -> None:
        pytest.fail("started")

    with pytest.raises(ConfigurationError, match=r"--profile-file .*: Is a directory; name a file"):
        await profiled(work(), tmp_path)
