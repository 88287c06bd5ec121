"""Real Kubernetes clusters for the benchmarks, run as tests/kubernetes runs them; `make kubernetes` builds the servers.

The fake kubelets of the clusters run in threads of the benchmark's process.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests are not installed

from tests.kubernetes.build import SERVERS, missing_binaries
from tests.kubernetes.cluster import real_cluster
from tests.kubernetes.members.federation import real_clusters

_NODES = 2
"""In each cluster."""


def server_processes() -> list[psutil.Process]:
    """Return the running servers that this process started."""
    return [child for child in psutil.Process().children() if child.name()[:15] in {name[:15] for name in SERVERS}]


@contextmanager
def real_members(directory: Path, count: int) -> Iterator[dict[str, Path]]:
    """Run clusters with controllers and a scheduler; yield their kubeconfigs by the name of the member."""
    _require_servers()
    with real_clusters(directory, [_NODES] * count) as clusters:
        yield {f"member-{number}": cluster.kubeconfig for number, cluster in enumerate(clusters, 1)}


@contextmanager
def real_server(directory: Path) -> Iterator[Path]:
    """Run an API server without controllers; yield its kubeconfig."""
    _require_servers()
    with real_cluster(directory, controllers=False) as cluster:
        yield cluster.kubeconfig


def _require_servers() -> None:
    if missing := missing_binaries(servers_only=True):
        raise SystemExit(f"benchmark: {', '.join(missing)} not built: run `make kubernetes`")
