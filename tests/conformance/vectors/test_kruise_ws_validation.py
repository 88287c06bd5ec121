"""WorkloadSpreads are valid or refused, with the fields of the vectors."""

import copy
from collections.abc import Mapping
from typing import Any

import orjson
from tests.support.spreads import RULES
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.hub import to_hub
from federation.planning.workloadspread.references import parse_whitelist
from federation.planning.workloadspread.specvalidation import validate_conflict, validate_spread, validate_update

TARGET = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "demo"}
OTHER_TARGET = {**TARGET, "name": "other"}


@each_case(load("kruise-ws-validation"))
def test_spreads_are_validated_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], existing=[])
    expected = filled(case["expected"])
    if given.get("object") is None:
        spread = to_hub({"spec": {"targetRef": TARGET, "subsets": given.get("subsets") or []}})
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
    assert len(causes) == expected.get("error_count", len(causes))


@each_case(load("kruise-ws-validation-update-conflict"))
def test_updates_and_conflicts_are_judged_as_in_the_vectors(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], self={}, others=[]), filled(case["expected"])
    match given["function"]:
        case "conflict":
            causes = validate_conflict(_spread(given["self"]), [_spread(other) for other in given["others"]])
        case "targetRefUpdate":
            old, new = (given.get(key) or {} for key in ("old", "new"))
            causes = validate_update(_spread(new), _spread(old))
        case _:
            causes = _handled(given)
    is_valid = expected.get("valid", expected.get("allowed", not causes))
    assert (not causes) == is_valid
    assert expected.get("error_field") in (None, *(cause["field"] for cause in causes))


def _spread(given: Mapping[str, Any]) -> dict[str, Any]:
    target = given.get("targetRef") or (given if given.get("kind") else None)
    return {"metadata": {"name": given.get("name")}, "spec": {"targetRef": target}}


def _handled(given: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the causes for a valid object that the case changes."""
    metadata, spec = {"name": "ws", "namespace": "default"}, {"targetRef": TARGET, "subsets": [{"name": "a"}]}
    old = {"apiVersion": f"apps.kruise.io/{given.get('version') or 'v1beta1'}", "metadata": metadata, "spec": spec}
    new = copy.deepcopy(old)
    if given.get("drop"):
        del new["spec"][given["drop"]]
    if given.get("change"):
        new["spec"][given["change"]] = OTHER_TARGET
    causes = validate_spread(to_hub(new), RULES, others=[to_hub(old)])
    return causes + (validate_update(to_hub(new), to_hub(old)) if given.get("op") == "update" else [])
