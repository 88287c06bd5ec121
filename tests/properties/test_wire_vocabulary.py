"""Properties of quantities, patches and generated names."""

import copy
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.quantity import NANOS, Notation, Quantity, format_quantity, parse
from federation.planning.federatedobject import builder, federatedtemplate, naming, pendingcontrollers
from federation.planning.overrides.patches import apply_patches

quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(Notation))
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
keys = st.sampled_from(["a", "b", "c", "d/e", "f~g"])
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(keys, documents, max_size=4)


@given(quantities)
def test_formatted_quantities_parse_to_the_same_value(quantity: Quantity) -> None:
    assert parse(format_quantity(quantity)).nanos == quantity.nanos


@given(quantities, quantities)
def test_sums_are_exact(left: Quantity, right: Quantity) -> None:
    assert Fraction((parse(str(left)) + parse(str(right))).nanos, NANOS) == Fraction(left.nanos + right.nanos, NANOS)


@given(quantities)
def test_rounding_never_makes_a_request_smaller(quantity: Quantity) -> None:
    assert abs(quantity.milli) * (NANOS // 1000) >= abs(quantity.nanos)
    assert abs(quantity.value) * NANOS >= abs(quantity.nanos)


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


@given(objects, objects)
def test_a_merge_patch_leads_from_the_old_object_to_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge(old, create_merge_patch(old, new)) == new


@given(objects, objects)
def test_applying_patches_never_changes_its_arguments(document: dict[str, Any], value: dict[str, Any]) -> None:
    patches = [{"path": "/a", "value": value}, {"path": "/a/b", "value": 1}, {"op": "remove", "path": "/a/b"}]
    before = copy.deepcopy((document, value))
    result = apply_patches(document, patches)
    assert (document, value) == before
    assert result["a"] == {key: part for key, part in value.items() if key != "b"}


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_two_sources_never_share_a_federated_object(first: str, second: str) -> None:
    name = naming.federated_object_name(first, "deployments.apps")
    assert len(name) <= naming.NAME_LENGTH_MAX
    if first != second:
        assert name != naming.federated_object_name(second, "deployments.apps")


stages = st.lists(st.lists(st.sampled_from("abcdef"), max_size=3, unique=True), max_size=4)


@given(stages, st.sampled_from("abcdef"), st.booleans(), stages)
def test_a_controller_that_acted_is_not_pending_in_the_first_stage(
    pending: list[list[str]], controller: str, is_changed: bool, whole: list[list[str]]
) -> None:
    given_stages = pendingcontrollers.normalise(pending)
    after = pendingcontrollers.advance(given_stages, controller, is_changed=is_changed, pipeline=whole)
    assert all(after), "no empty stages"
    if not is_changed:
        is_pending = bool(given_stages) and controller in given_stages[0]
        assert sum(map(len, after)) == sum(map(len, given_stages)) - is_pending


metadata_keys = st.sampled_from(
    [*sorted(federatedtemplate.FEDERATED_ANNOTATIONS)[:3], names.SCHEDULING, "team", "tier"]
)
maps = st.dictionaries(metadata_keys, st.text(max_size=3), max_size=5)
TYPE = next(from_config(c) for c in default_type_configs() if c["metadata"]["name"] == "deployments.apps")


def a_source(annotations: dict[str, str], spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "d", "uid": "u", "resourceVersion": "1", "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


@given(maps, objects, maps, objects)
def test_one_update_makes_a_federated_object_match_its_source(
    old_map: dict[str, str], old_spec: Any, new_map: dict[str, str], new_spec: Any
) -> None:
    federated = builder.build(a_source(old_map, old_spec), TYPE)
    federated["metadata"]["resourceVersion"] = "2"
    source = a_source(new_map, new_spec)
    patch = builder.plan_update(source, federated, TYPE)
    updated = merge(federated, patch) if patch is not None else federated
    assert updated["spec"]["template"] == federatedtemplate.divide(source).template
    # What users wrote of a Service's allocations is computed; their own value of the annotation does not count.
    kept = federatedtemplate.FEDERATED_ANNOTATIONS - {names.WRITTEN_ALLOCATIONS}
    moved = {key: value for key, value in new_map.items() if key in kept}
    held = updated["metadata"]["annotations"]
    assert {key: value for key, value in held.items() if key in federatedtemplate.FEDERATED_ANNOTATIONS} == moved
    assert builder.plan_update(source, updated, TYPE) is None
