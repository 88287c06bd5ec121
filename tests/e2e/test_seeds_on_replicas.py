"""The manifests of document 003 on two replicas with PostgreSQL: the tests of test_seeds_003.py, unchanged."""

import pytest

from tests.e2e.test_on_replicas import postgres, serve  # noqa: F401  # fixtures
from tests.e2e.test_seeds_003 import (  # noqa: F401  # collected here, with the fixture `serve` above
    fed,
    provide,
    serve_alone,
    test_every_selector_of_the_printed_policy_excludes_a_cluster,
    test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0,
    test_the_printed_override_changes_the_image_in_the_intersection_only,
    test_the_printed_policy_places_the_deployment_in_one_of_its_clusters,
    test_weights_40_30_40_divide_the_replicas,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.nightly,
    pytest.mark.postgres,
    pytest.mark.xdist_group("seedsonreplicas"),
]
