"""`fedctl serve --host-kubeconfig` on a real API server: the tests of tests/e2e/test_existing_host.py.

Only the API server and etcd run on this host. The members are simulated: other modules of this folder show real ones.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.e2e.test_existing_host import (  # noqa: F401  # collected here, with the fixture `host` below
    fed,
    quickstart,
    serve,
    started,
    tenant,
    test_a_new_object_has_our_finalizer_from_its_first_moment,
    test_a_tenant_cannot_deliver_with_the_federations_rights,
    test_a_tenants_policy_selects_only_what_he_may_update,
    test_a_wrong_kubeconfig_is_one_line,
    test_decisions_are_shown_to_users_who_may_read_the_object,
    test_the_controllers_act_as_an_account_without_wildcards,
    test_the_quickstart_runs,
    test_the_web_ui_shows_and_scales_with_the_token_of_its_user,
)
from tests.e2e.test_seeds_003 import (  # noqa: F401  # the same
    Provide,
    Serve,
    test_every_selector_of_the_printed_policy_excludes_a_cluster,
    test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0,
    test_the_printed_override_changes_the_image_in_the_intersection_only,
    test_the_printed_policy_places_the_deployment_in_one_of_its_clusters,
    test_weights_40_30_40_divide_the_replicas,
)
from tests.kubernetes.cluster import real_cluster
from tests.support.federation import Federation, free_clusters, start_on_host


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the administrator of a real API server."""
    with real_cluster(tmp_path_factory.mktemp("host") / "cluster", controllers=False) as running:
        yield running.kubeconfig


@pytest.fixture(scope="module")
def serve_alone() -> Serve:
    """The federation on a real API server that no other test uses."""

    @contextmanager
    def on_new_host(directory: Path) -> Iterator[Federation]:
        with (
            real_cluster(directory.parent / "cluster", controllers=False) as server,
            closing(start_on_host(directory, server.kubeconfig)) as running,
        ):
            yield running

    return on_new_host


@pytest.fixture(scope="module")
def provide() -> Provide:
    """Simulated clusters."""
    return free_clusters
