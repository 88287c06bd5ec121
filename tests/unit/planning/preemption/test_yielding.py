"""Who gives way, and the record of replicas that gave way, as an annotation."""

import pytest

from federation.planning.preemption.yielding import Need, Victim, Yield, choose_victims, yields_from, yields_to_text

YIELDS = {"east": Yield(2, 1, "default/web"), "west": Yield(0, 3, "")}


def test_a_record_survives_its_annotation() -> None:
    assert yields_from(yields_to_text(YIELDS)) == YIELDS
    assert yields_to_text({}) is None
    assert yields_from(None) == {}


@pytest.mark.parametrize(
    "entry", ["1", '"keeps"', "{}", '{"keeps":1}', '{"count":1}', '{"keeps":"1","count":1}', '{"keeps":1,"count":true}']
)
def test_a_malformed_entry_counts_as_none(entry: str) -> None:
    text = f'{{"east":{entry},"west":{{"keeps":-1,"count":2}}}}'
    assert yields_from(text) == {"west": Yield(0, 2, "")}


def test_what_several_victims_give_too_much_is_taken_back_once() -> None:
    victims = [
        Victim("a", 1, {"cpu": 1}, 2),
        Victim("b", 2, {"cpu": 1}, 2),
        Victim("c", 3, {"cpu": 1, "memory": 1}, 4),
    ]
    assert choose_victims(Need(1, 9, {"cpu": 4, "memory": 3}), victims) == {"a": 1, "c": 3}
