"""The account of a join in a real cluster, and its rotation: the tests of tests/attacks.

Here RBAC, tokens and the garbage collector are Kubernetes' own.
"""

from tests.attacks.test_join_rights import (  # noqa: F401  # collected here, with the fixtures `fed` and `clusters` of conftest.py
    member,
    test_a_kind_that_is_federated_later_is_held_until_its_rights_are_granted,
    test_the_account_can_do_nothing_else,
    test_the_computed_rights_suffice_for_every_default_kind,
)
from tests.attacks.test_member_credentials import (  # noqa: F401  # as above
    test_a_failed_rotation_leaves_the_present_account_alone,
    test_a_join_without_the_right_to_grant_leaves_nothing_behind,
    test_a_member_with_given_credentials_is_reported_and_can_be_restricted,
    test_a_rotation_under_load_loses_nothing_and_revokes_the_old_token,
    test_another_cluster_is_refused_and_nothing_changes,
    test_given_credentials_in_a_declared_cluster_are_removed_after_the_join,
    test_the_stored_credentials_suffice_for_a_new_token,
)
