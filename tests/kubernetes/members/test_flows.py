"""Everyday tasks of a Kubernetes user with three real members: the tests of tests/e2e/test_user_flows.py, unchanged."""

from collections.abc import Iterator

import pytest
from tests.e2e.test_user_flows import (  # noqa: F401  # collected here, with the fixture `fed` of this module
    test_a_deployment_without_a_policy_stays_on_the_host,
    test_a_manual_change_in_a_member_is_reverted,
    test_a_namespace_is_propagated_and_deleted_in_every_member_with_its_workloads,
    test_a_new_image_rolls_out_in_every_member,
    test_a_policy_label_takes_precedence_over_resource_selectors,
    test_an_object_without_a_feasible_cluster_reports_the_reason,
    test_changing_a_policy_moves_replicas,
    test_config_maps_and_services_are_propagated_to_every_member,
    test_deletion_waits_for_the_members,
    test_followers_are_placed_with_their_leader_and_why_shows_it,
    test_orphaned_workloads_keep_running_in_the_members,
    test_rollout_status_and_wait_return_when_all_members_are_available,
    test_scaling_divides_replicas_again_and_zero_keeps_the_placement,
    user,
)
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, real_federation


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("flows"), members) as running:
        yield running
