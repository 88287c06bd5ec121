"""Three real clusters for the modules of this folder. Each module joins them to a new host and cleans them afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.test_seeds_003 import Provide
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import cleaned, real_clusters
from tests.support.federation import free_clusters


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """Three real clusters, shared by all modules; each module removes its objects again."""
    with real_clusters(tmp_path_factory.mktemp("clusters"), 3) as running:
        yield running


@pytest.fixture(scope="module")
def provide(real: list[Cluster]) -> Provide:
    """The real clusters, and simulated ones when more are needed."""

    @contextmanager
    def provide_clusters(directory: Path, count: int) -> Iterator[list[Path]]:
        found = [cluster.kubeconfig for cluster in real[:count]]
        with cleaned(real[:count]):
            if count == len(found):
                yield found
                return
            with free_clusters(directory, count - len(found)) as simulated:
                yield found + simulated

    return provide_clusters
