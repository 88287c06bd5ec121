"""The selectors of the policies that document 003 prints, with three real members; see test_seeds.py."""

from tests.e2e.test_seeds_003 import (  # noqa: F401  # collected here, with the fixture `provide` of conftest.py
    serve,
    serve_alone,
    test_every_selector_of_the_printed_policy_excludes_a_cluster,
    test_the_printed_override_changes_the_image_in_the_intersection_only,
)
