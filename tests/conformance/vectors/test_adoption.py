"""Behaviour vectors: may a pre-existing member object be adopted in this cluster?"""

from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.api import names
from federation.delivery.rules.adoption import AdoptionError, is_adoption_allowed, is_cluster_to_adopt


@each_case(load("adoption"))
def test_adoption(case: dict[str, Any]) -> None:
    given = filled(case["input"], annotations={}, cluster="")
    expected = filled(case["expected"], error=False, adopt=False)
    annotations = given["annotations"]
    switched_on = {**annotations, names.CONFLICT_RESOLUTION: "adopt"}
    if expected["error"]:
        with pytest.raises(AdoptionError):
            is_cluster_to_adopt(annotations, given["cluster"])
        with pytest.raises(AdoptionError):
            is_adoption_allowed(switched_on, given["cluster"])
        return
    assert is_cluster_to_adopt(annotations, given["cluster"]) == expected["adopt"]
    assert is_adoption_allowed(switched_on, given["cluster"]) == expected["adopt"]
    assert not is_adoption_allowed(annotations, given["cluster"]), "the switch is off"
