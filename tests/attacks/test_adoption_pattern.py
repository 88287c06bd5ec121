"""Attack: a tenant's annotation clusters-to-adopt holds a pattern whose match never ends."""

import orjson
import pytest

from federation.api import names
from federation.delivery.rules.adoption import AdoptionError, is_adoption_allowed


def annotations(pattern: str) -> dict[str, str]:
    text = orjson.dumps({"regexp": pattern}).decode()
    return {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: text}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("pattern", ["((.+)+)+!", "(a|a|.)*!"])
def test_a_pattern_takes_linear_time(pattern: str) -> None:
    """With the 63 letters of a cluster's name a backtracking engine takes years."""
    assert not is_adoption_allowed(annotations(pattern), "a" * 63)


def test_patterns_are_those_of_go() -> None:
    assert is_adoption_allowed(annotations("^mem.*r-[0-9]+$"), "member-12")
    assert not is_adoption_allowed(annotations("^west"), "north-west")
    for wrong in ("(?=a)", "(", "a{1000}{1000}"):
        with pytest.raises(AdoptionError):
            is_adoption_allowed(annotations(wrong), "east")
