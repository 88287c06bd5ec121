"""The official JavaScript client, and the requests of dashboards that are built on it, against real servers."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.proxiedmember import proxied_member

FOLDER = Path(__file__).parents[1] / "javascript"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts Node for every request of the dashboards"),
    pytest.mark.skipif(
        not (FOLDER / "node_modules" / "@kubernetes").exists(),
        reason="needs Node 20 and: npm ci --prefix tests/javascript",
    ),
]


def test_dashboards_find_what_they_ask_for(tmp_path: Path) -> None:
    with proxied_member(tmp_path) as running:
        environment = {"HOST_KUBECONFIG": str(running.host), "MEMBER_KUBECONFIG": str(running.member)}
        done = subprocess.run(
            ["node", "--test", "--test-reporter=spec", "dashboards.test.js"],
            cwd=FOLDER,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
