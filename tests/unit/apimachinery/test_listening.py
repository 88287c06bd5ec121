"""Silence counts only while an answer could have arrived."""

from federation.apimachinery.listening import Silence


def test_a_silence_counts_from_look_to_look_and_at_most_a_step() -> None:
    silence = Silence()
    assert silence.look(10.0, 2.0) == 0.0, "nothing is known about the time before the first look"
    assert silence.look(11.0, 2.0) == 1.0
    assert silence.look(100.0, 2.0) == 3.0, "nobody looked meanwhile"
    silence.end(101.0)
    assert silence.look(102.0, 2.0) == 1.0, "the answer was the last look"
