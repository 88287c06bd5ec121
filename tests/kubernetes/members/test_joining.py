"""Joining and unjoining real clusters, by every kind of credentials: the tests of tests/e2e/test_joining.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_joining import (  # noqa: F401  # collected here, with the fixtures `fed` and `member` of this module
    test_a_cluster_can_rejoin_at_once_and_what_it_kept_is_offered_and_left,
    test_a_member_joins_with_a_token_and_a_ca,
    test_a_member_joins_with_a_token_file,
    test_a_member_joins_with_an_exec_plugin,
    test_a_member_joins_with_certificate_files,
    test_a_member_joins_without_tls_verification_if_the_kubeconfig_disables_it,
    test_a_namespace_that_existed_before_joining_is_released,
    test_a_taint_prevents_placement_until_it_is_removed,
    test_credentials_are_replaced_by_a_service_account,
    test_given_credentials_are_stored_only_if_that_is_requested,
    test_unjoining_cleans_the_member_and_leaves_its_workloads,
    test_unjoining_waits_for_new_credentials_when_the_account_has_lost_its_rights,
)
from tests.support.federation import Federation, eventually
from tests.support.joining import Member, assert_works


@pytest.fixture
def member(fed: Federation, clusters: list[Path]) -> Iterator[Member]:
    """The cluster that joins; the next test begins when its namespace is gone, which takes Kubernetes five seconds."""
    one = Member(fed, "frankfurt", clusters[0])
    yield one
    one.leave()


def test_a_member_joins_with_a_client_certificate_and_shows_its_nodes(member: Member) -> None:
    joined = member.join(member.kubectl.kubeconfig, "--labels", "region=eu")
    assert joined == 'cluster "frankfurt" joined and is ready\n'
    assert_works(member)
    name, status, _, nodes, *_ = member.fedctl("clusters").splitlines()[1].split()
    assert (name, status, nodes) == ("frankfurt", "Ready", "2")
    version = member.fed.kubectl("get", "fcluster", "frankfurt", "-o", "jsonpath={.status.apiResourceTypes[*].kind}")
    assert "EndpointSlice" in version.split()


def test_unjoining_leaves_no_trace_but_the_workloads(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    member.unjoin()
    eventually(member.traces, lambda left: not left, what="no trace of the membership")
    assert member.runs_web()
