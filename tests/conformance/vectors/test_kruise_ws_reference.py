"""Controllers lead to the target of a WorkloadSpread as in the vectors."""

from collections.abc import Mapping
from typing import Any

import orjson
from tests.support.spreads import among, drive
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.references import (
    EMPTY_WHITELIST,
    find_spread,
    is_managed,
    is_same_workload,
    parse_whitelist,
)


@each_case(load("kruise-ws-reference"))
def test_references_are_compared_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], targetRef={}, ownerChain=[], ownerKinds=[])
    expected = filled(case["expected"], equal=False, error=False, managed=False)
    whitelist = (
        parse_whitelist(orjson.dumps(given["whitelist"]).decode()) if given.get("whitelist") else EMPTY_WHITELIST
    )
    if given["ownerKinds"]:
        groups_and_kinds = [text.rsplit("/", 1) for text in given["ownerKinds"]]
        managed = [
            is_managed({"apiVersion": f"{group}/v1", "kind": kind}, whitelist) for group, kind in groups_and_kinds
        ]
        assert managed == [expected["managed"]] * len(managed)
    elif given["ownerChain"]:
        owners = [_controlled_by(reference) for reference in given["ownerChain"]]
        spread = {"spec": {"targetRef": given["targetRef"]}}
        found = drive(find_spread(among(spread), owners[0], whitelist), owners[1:])
        assert (found is not None) == expected["equal"]
    else:
        assert is_same_workload(given["targetRef"], given.get("ownerRef") or {}) == expected["equal"]


def _controlled_by(reference: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{**reference, "controller": True}]}}
