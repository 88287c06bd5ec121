"""The fedctl that tests fork (tests/support/forkserver.py) does what one does that an interpreter starts."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.federation import CLI, FEDCTL, run_fedctl
from tests.support.forkserver import ForkedProcess, start_process

pytestmark = [pytest.mark.e2e, pytest.mark.slow("starts interpreters"), pytest.mark.xdist_group("shared")]


@pytest.mark.parametrize(
    "arguments",
    [("version",), ("why",), ("clusters",), ("convert", "-f", "policy.yaml")],
    ids=" ".join,
)
def test_output_and_exit_code_are_those_of_an_interpreter(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("apiVersion: policy.karmada.io/v1alpha1\nkind: Unknown\n")
    environment = {**os.environ, "KUBECONFIG": "nowhere", "HOME": str(tmp_path)}
    started = subprocess.run(
        [*FEDCTL, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    forked = run_fedctl(arguments, environment=environment, folder=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert (started.returncode == 0) == (arguments == ("version",))


def test_a_signal_is_the_exit_code(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        process = start_process(CLI, ("serve", "--dir", str(tmp_path / "state"), "--port", "0"), stderr=log.fileno())
    assert process.stdout is not None
    with process.stdout:
        assert isinstance(process, ForkedProcess)
        assert process.stdout.readline().startswith("ready")
        assert process.poll() is None
        process.kill()
        assert process.wait(30) == process.poll() == -signal.SIGKILL


def test_an_environment_that_interpreters_read_starts_one(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    with (tmp_path / "log").open("w") as log:
        process = start_process(CLI, ("version",), environment=environment, stderr=log.fileno())
    assert isinstance(process, subprocess.Popen)
    with process:
        assert process.communicate()[0].strip()
