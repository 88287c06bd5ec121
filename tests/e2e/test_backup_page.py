"""docs/backup.md: the restore drill is executed, on simulated clusters that outlive the control plane."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.federation import Federation, free_clusters, start_serve
from tests.support.pages import Shell, check_command, prepare, sessions
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("executes a page")]
PAGE = ROOT / "docs" / "backup.md"
START, STOP = "fedctl serve --dir federation &", "kill %1 && wait"
READS = ("kubectl get", "kubectl --kubeconfig", "fedctl clusters", "fedctl leftovers")
"""Commands that are repeated until they print what the page shows."""


def test_the_drill_restores_the_host_and_keeps_what_members_have(tmp_path: Path) -> None:
    prepare(tmp_path)
    commands = sessions(PAGE.read_text(encoding="utf-8"))
    exports = [each for each, _ in commands if each.startswith("export ")]
    shell = Shell(tmp_path, exports)
    running: Federation | None = None
    with free_clusters(tmp_path / "clusters", 3):
        for command, expected in commands:
            if command == START:
                running = start_serve(tmp_path / "federation")
            elif command == STOP:
                assert running is not None
                with closing(running):
                    assert running.stop() == 0
            elif not command.startswith("export "):
                check_command(shell, command, expected, READS)
