"""Three real clusters for the modules of this folder. Each module joins them to a new host and cleans them afterwards."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.e2e.test_seeds_003 import Provide
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import cleaned, real_clusters
from tests.support.federation import Federation, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """Three real clusters, shared by all modules; each module removes its objects again."""
    with real_clusters(tmp_path_factory.mktemp("clusters"), (2, 2, 2)) as running:
        yield running


@pytest.fixture(scope="module")
def clusters(real: list[Cluster]) -> Iterator[list[Path]]:
    """The kubeconfigs of the real clusters, which are not members yet."""
    with cleaned(real):
        yield [cluster.kubeconfig for cluster in real]


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, clusters: list[Path]) -> Iterator[Federation]:
    """A host without members, for modules that join `clusters` themselves; others have a `fed` of their own."""
    assert clusters, "they are cleaned after the host has stopped"
    with closing(start_serve(tmp_path_factory.mktemp("host") / "host")) as running:
        running.kubectl.apply(POLICY, DEPLOYMENT)
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
