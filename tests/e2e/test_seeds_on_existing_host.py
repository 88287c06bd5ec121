"""The manifests of document 003 on an existing host in another process: the tests of test_seeds_003.py, unchanged."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.test_existing_host import host, serve, server, started  # noqa: F401  # fixtures
from tests.e2e.test_seeds_003 import (  # noqa: F401  # collected here, with the fixture `serve` above
    Serve,
    fed,
    provide,
    test_every_selector_of_the_printed_policy_excludes_a_cluster,
    test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0,
    test_the_printed_override_changes_the_image_in_the_intersection_only,
    test_the_printed_policy_places_the_deployment_in_one_of_its_clusters,
    test_weights_40_30_40_divide_the_replicas,
)
from tests.support.federation import Federation, start_on_host
from tests.support.plainhost import plain_host

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("seedsonexistinghost")]


@pytest.fixture(scope="module")
def serve_alone() -> Serve:
    """The federation on a host that no other test uses."""

    @contextmanager
    def on_new_host(directory: Path) -> Iterator[Federation]:
        with (
            plain_host(directory.parent / "server") as new,
            closing(start_on_host(directory, new.kubeconfig)) as running,
        ):
            yield running

    return on_new_host
