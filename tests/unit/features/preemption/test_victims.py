"""Replicas that several workloads give up for one."""

from federation.features.preemption.rules.victims import Need, Victim, choose_victims


def test_what_several_victims_give_too_much_is_taken_back_once() -> None:
    victims = [
        Victim("a", 1, {"cpu": 1}, 2),
        Victim("b", 2, {"cpu": 1}, 2),
        Victim("c", 3, {"cpu": 1, "memory": 1}, 4),
    ]
    assert choose_victims(Need(1, 9, {"cpu": 4, "memory": 3}), victims) == {"a": 1, "c": 3}
