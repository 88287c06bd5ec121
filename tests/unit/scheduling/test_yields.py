"""The record of replicas that gave way survives its annotation, and a malformed one counts as none."""

import pytest

from federation.scheduling.yields import Yield, yields_from, yields_to_text

YIELDS = {"east": Yield(2, 1, "default/web"), "west": Yield(0, 3, "")}


def test_a_record_survives_its_annotation() -> None:
    assert yields_from(yields_to_text(YIELDS)) == YIELDS
    assert yields_to_text({}) is None
    assert yields_from(None) == {}


@pytest.mark.parametrize(
    "entry", ["1", '"keeps"', "{}", '{"keeps":1}', '{"keeps":"1","count":1,"to":""}', '{"keeps":-1,"count":1,"to":""}']
)
def test_a_malformed_record_counts_as_none(entry: str) -> None:
    assert yields_from(f'{{"east":{entry},"west":{{"keeps":1,"count":2,"to":""}}}}') == {}
