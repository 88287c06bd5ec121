"""Which existing objects of a cluster may be adopted."""

import orjson
import pytest

from federation.api import names
from federation.delivery.rules.adoption import (
    AdoptionError,
    is_adoption_allowed,
    is_cluster_to_adopt,
    takes_only_equal,
)


def listed(*clusters: str, regexp: str = "") -> str:
    return orjson.dumps({"clusters": list(clusters), "regexp": regexp}).decode()


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({names.CLUSTERS_TO_ADOPT: ""}, False),
        ({names.CLUSTERS_TO_ADOPT: "{}"}, False),
        ({names.CLUSTERS_TO_ADOPT: listed("m1", "m2")}, True),
        ({names.CLUSTERS_TO_ADOPT: listed("m2")}, False),
        ({names.CLUSTERS_TO_ADOPT: listed("m2", regexp="1$")}, True),
        ({names.CLUSTERS_TO_ADOPT: listed("m2", regexp="^1")}, False),
        ({names.INTERNAL_CLUSTERS_TO_ADOPT: listed("m1")}, True),
        ({names.INTERNAL_CLUSTERS_TO_ADOPT: listed("m2"), names.CLUSTERS_TO_ADOPT: listed("m1")}, False),
    ],
)
def test_a_cluster_is_named_or_matches(annotations: dict[str, str], expected: bool) -> None:
    assert is_cluster_to_adopt(annotations, "m1") is expected
    for resolution in (names.CONFLICT_RESOLUTION, names.INTERNAL_CONFLICT_RESOLUTION):
        assert is_adoption_allowed({**annotations, resolution: "adopt"}, "m1") is expected
        assert is_adoption_allowed({**annotations, resolution: "adopt-if-equal"}, "m1") is expected
        assert takes_only_equal({**annotations, resolution: "adopt-if-equal"})
        assert not takes_only_equal({**annotations, resolution: "adopt"})
        assert not is_adoption_allowed({**annotations, resolution: "abort"}, "m1")
    assert not is_adoption_allowed(annotations, "m1")
    ours = {names.INTERNAL_CONFLICT_RESOLUTION: "abort", names.CONFLICT_RESOLUTION: "adopt"}
    assert not is_adoption_allowed({**annotations, **ours}, "m1"), "the internal one counts"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "unexpected end"),
        ("[]", "is not a JSON object"),
        ('{"clusters": "m1"}', "clusters is a list of names and regexp a text"),
        ('{"regexp": 1}', "clusters is a list of names and regexp a text"),
        (listed(regexp="("), "missing \\)"),
        (listed(regexp="a" * 1025), "regexp may have 1024 characters"),
    ],
)
def test_a_malformed_annotation_is_an_error_that_names_it(text: str, message: str) -> None:
    with pytest.raises(AdoptionError, match=message) as refused:
        is_cluster_to_adopt({names.CLUSTERS_TO_ADOPT: text}, "m1")
    assert names.CLUSTERS_TO_ADOPT in str(refused.value)


def test_the_longest_expression_is_accepted() -> None:
    assert not is_cluster_to_adopt({names.CLUSTERS_TO_ADOPT: listed(regexp="a" * 1024)}, "m1")
