"""Properties of the patches: round trips, inputs that stay, agreement with well-kept libraries."""

import copy

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.jsonpatch import apply_json_patch
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema.model import ANYTHING

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])
SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "y"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_created_merge_patch_leads_from_one_to_the_other(before, after):
    patch = create_merge_patch(before, after)
    kept = copy.deepcopy((before, patch))
    assert apply_merge_patch(before, patch) == after
    assert (before, patch) == kept
    assert create_merge_patch(after, after) == {}


@given(OBJECTS, OBJECTS)
def test_a_strategic_patch_without_schema_or_directives_is_a_merge_patch(before, after):
    patch = create_merge_patch(before, after)
    assert strategic_merge_patch(ANYTHING, before, patch) == after


@given(OBJECTS, OBJECTS)
def test_json_patches_lead_where_the_library_says(before, after):
    operations = jsonpatch.make_patch(before, after).patch
    kept = copy.deepcopy((before, operations))
    assert apply_json_patch(before, operations) == after
    assert (before, operations) == kept


@given(OBJECTS, OBJECTS)
def test_merging_twice_changes_nothing_more(before, after):
    patch = create_merge_patch(before, after)
    once = apply_merge_patch(before, patch)
    assert apply_merge_patch(once, patch) == once
