"""The memory of the host's verdicts: age, number, configuration, and pauses after silence."""

from federation.delivery.host.verdictcache import Review, VerdictCache, VerdictCacheOptions
from federation.planning.rendering.verdicts import ADMITTED, Outcome, Verdict

SILENCE = Verdict(Outcome.UNANSWERED, "nobody is there")


def asked(subject: str = "a") -> Review:
    return Review(subject, "user")


def test_a_verdict_holds_for_its_age_and_its_configuration() -> None:
    cache = VerdictCache(VerdictCacheOptions(verdict_age_s_max=10))
    cache.put(asked(), ADMITTED, 0, now_s=100)
    assert cache.get(asked(), 101) == (ADMITTED, 9)
    assert cache.get(asked(), 110) is None
    assert cache.get(Review("a", "other"), 101) is None
    cache.configuration += 1
    assert cache.get(asked(), 101) is None


def test_an_answer_to_an_earlier_configuration_does_not_count() -> None:
    cache = VerdictCache()
    cache.configuration = 2
    cache.put(asked(), ADMITTED, 1, now_s=0)
    assert cache.get(asked(), 1) is None


def test_pauses_double_and_begin_anew_with_another_configuration() -> None:
    cache, now_s, pauses = VerdictCache(), 0.0, []
    for _ in range(8):
        cache.put(asked(), SILENCE, 0, now_s)
        known = cache.get(asked(), now_s)
        assert known is not None
        pauses.append(known[1])
        now_s += known[1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    cache.configuration = 1
    cache.put(asked(), SILENCE, 1, now_s)
    assert cache.get(asked(), now_s) == (SILENCE, 1)


def test_the_least_used_verdict_is_forgotten_first() -> None:
    cache = VerdictCache(VerdictCacheOptions(verdicts_max=2))
    for subject in ("a", "b"):
        cache.put(asked(subject), ADMITTED, 0, now_s=0)
    assert cache.get(asked("a"), 1) is not None
    cache.put(asked("c"), ADMITTED, 0, now_s=1)
    assert cache.get(asked("a"), 1) is not None
    assert cache.get(asked("b"), 1) is None
