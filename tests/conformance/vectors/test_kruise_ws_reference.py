"""Controllers lead to the target of a WorkloadSpread as in the vectors."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from tests.support.spreads import among, drive
from tests.support.vectors import each_case, facts, filled, load

from federation.features.workloadspread.rules.references import (
    EMPTY_WHITELIST,
    find_spread,
    is_managed,
    is_same_workload,
    parse_whitelist,
)


@each_case(load("kruise-ws-reference"))
def test_references_are_compared_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(
        case["input"],
        targetRef={},
        ownerRef={},
        ownerChain=[],
        ownerKinds=[],
        whitelist=None,
        targetFilter=None,
        labels={},
    )
    expected = filled(case["expected"], equal=False, error=False, managed=False)
    whitelist = parse_whitelist(orjson.dumps(given["whitelist"]).decode()) if given["whitelist"] else EMPTY_WHITELIST
    if given["ownerKinds"]:
        groups_and_kinds = [text.rsplit("/", 1) for text in given["ownerKinds"]]
        managed = [
            is_managed({"apiVersion": f"{group}/v1", "kind": kind}, whitelist) for group, kind in groups_and_kinds
        ]
        assert managed == [expected["managed"]] * len(managed)
    elif given["ownerChain"]:
        # The caller of the search fails for a controller that does not exist, so that its pod is not admitted.
        is_missing = [bool(reference.get("notFound") or reference.get("missing")) for reference in given["ownerChain"]]
        owners = [_controlled_by(reference) for reference in given["ownerChain"]]
        spread = {"spec": {"targetRef": given["targetRef"], "targetFilter": given["targetFilter"]}}
        pod = {**owners[0], "metadata": {**owners[0]["metadata"], "labels": given["labels"]}}
        reads = list(itertools.takewhile(lambda each: not each[1], zip(owners[1:], is_missing, strict=False)))
        asked: list[bool] = []
        found = drive(find_spread(among(spread), pod, whitelist), _noting((owner for owner, _ in reads), asked))
        assert (found is not None) == expected["equal"]
        assert (len(asked) > len(reads) and any(is_missing)) == expected["error"]
    else:
        assert is_same_workload(given["targetRef"], given["ownerRef"]) == expected["equal"]
        assert not expected["error"]


def _noting(owners: Iterator[Any], asked: list[bool]) -> Iterator[Any]:
    """Yield the owners, then None for ever, and note each look-up."""
    for owner in itertools.chain(owners, itertools.repeat(None)):
        asked.append(True)
        yield owner


def _controlled_by(reference: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"controller": True, **reference}]}}
