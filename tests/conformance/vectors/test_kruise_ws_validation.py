"""WorkloadSpreads are valid or refused, with the fields of the vectors."""

import copy
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from tests.support.spreads import RULES
from tests.support.vectors import each_case, facts, filled, load

from federation.apimachinery.errors import BadRequest
from federation.features.workloadspread.rules.hub import V1ALPHA1, field_in, to_hub
from federation.features.workloadspread.rules.references import parse_whitelist
from federation.features.workloadspread.rules.specvalidation import validate_conflict, validate_spread, validate_update

TARGET = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "demo"}
OTHER_TARGET = {**TARGET, "name": "other"}


@each_case(load("kruise-ws-validation"))
def test_spreads_are_validated_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], existing=[], object=None, subsets=[], workload=None, whitelist={})
    expected = filled(case["expected"])
    if given["object"] is None:
        spread = to_hub({"spec": {"targetRef": TARGET, "subsets": given["subsets"]}})
    else:
        spread = to_hub(given["object"])
    texts = repr((spread, given.get("workload")))
    others = [to_hub(other) for other in given["existing"]]
    whitelist = parse_whitelist(orjson.dumps(given.get("whitelist") or {}).decode())
    causes = validate_spread(spread, RULES, others=others, workload=given.get("workload"), whitelist=whitelist)
    assert repr((spread, given.get("workload"))) == texts, "validation changes nothing in place"
    fields = {cause["field"] for cause in causes}
    assert (not causes) == expected.get("valid", not causes)
    assert expected.get("error_field") in (None, *fields)
    assert set(expected.get("error_fields") or ()) <= fields
    assert expected.get("error_field_v1alpha1_spelling") in (None, *(field_in(V1ALPHA1, field) for field in fields))
    assert len(causes) == expected.get("error_count", len(causes))


@each_case(load("kruise-ws-validation-update-conflict"))
def test_updates_and_conflicts_are_judged_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(
        case["input"],
        function="",
        self={},
        others=[],
        old={},
        new={},
        version="v1beta1",
        op="create",
        drop="",
        change="",
    )
    expected = filled(case["expected"])
    match given["function"]:
        case "conflict":
            causes = validate_conflict(_spread(given["self"]), [_spread(other) for other in given["others"]])
        case "targetRefUpdate":
            causes = validate_update(_spread(given["new"]), _spread(given["old"]))
        case "handler":
            causes = _handled(given)
        case other:
            pytest.fail(f"the format has a function without an adapter: {other}")
    is_valid = expected.get("valid", expected.get("allowed", not causes))
    assert (not causes) == is_valid
    # Admission in members and on the host raises BadRequest.
    assert expected.get("code") in (None, 200 if is_valid else BadRequest.code)
    assert expected.get("error_field") in (None, *(cause["field"] for cause in causes))


def _spread(given: Mapping[str, Any]) -> dict[str, Any]:
    target = given.get("targetRef") or (given if given.get("kind") else None)
    return {"metadata": {"name": given.get("name")}, "spec": {"targetRef": target}}


def _handled(given: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the causes for a valid object that the case changes."""
    metadata, spec = {"name": "ws", "namespace": "default"}, {"targetRef": TARGET, "subsets": [{"name": "a"}]}
    old = {"apiVersion": f"apps.kruise.io/{given['version']}", "metadata": metadata, "spec": spec}
    new = copy.deepcopy(old)
    if given["drop"]:
        del new["spec"][given["drop"]]
    if given["change"]:
        assert given["change"] == "targetRef"
        new["spec"]["targetRef"] = OTHER_TARGET
    causes = validate_spread(to_hub(new), RULES, others=[to_hub(old)])
    return causes + (validate_update(to_hub(new), to_hub(old)) if given["op"] == "update" else [])
