"""The answer of the source of rates."""

import json
from typing import Any

import pytest

from federation.api import names
from federation.planning.cost.ratelist import label_changes, parse_rates


def parsed(entry: Any) -> Any:
    return parse_rates(json.dumps({"clusters": {"east": entry}}).encode())["east"]


def test_an_entry_replaces_the_labels_of_what_it_has() -> None:
    labels = {f"{names.PRICE_PREFIX}cpu": "1", f"{names.PRICE_PREFIX}gpu": "2", f"{names.CARBON_PREFIX}cpu": "3"}
    entry = parsed({"price": {"cpu": 0.0000001, "memory": 4}, "capacityType": "spot"})
    assert label_changes(labels, entry) == {
        f"{names.PRICE_PREFIX}cpu": "0.0000001",
        f"{names.PRICE_PREFIX}gpu": None,
        f"{names.PRICE_PREFIX}memory": "4",
        names.CAPACITY_TYPE: "spot",
    }


def test_labels_that_are_right_stay() -> None:
    assert label_changes({f"{names.PRICE_PREFIX}cpu": "0.04"}, parsed({"price": {"cpu": 0.04}})) == {}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", "the answer is not JSON"),
        (b"[]", "the answer has no object clusters"),
        (b'{"clusters": []}', "the answer has no object clusters"),
        (b'{"clusters": {"east": 3}}', "clusters.east is not an object"),
        (b'{"clusters": {"east": {"cost": {}}}}', "clusters.east.cost is unknown"),
        (b'{"clusters": {"east": {"price": 3}}}', "clusters.east.price is not an object"),
        (b'{"clusters": {"east": {"price": {"cpu": "3"}}}}', "clusters.east.price.cpu is '3', not a number"),
        (b'{"clusters": {"east": {"price": {"cpu": -1}}}}', "clusters.east.price.cpu is -1, not a number"),
        (b'{"clusters": {"east": {"price": {"a/b": 1}}}}', "is not the name of a resource without its domain"),
        (b'{"clusters": {"east": {"capacityType": "free"}}}', "clusters.east.capacityType is 'free', not spot"),
    ],
)
def test_an_answer_that_is_wrong_is_refused_with_its_field(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_rates(body)
