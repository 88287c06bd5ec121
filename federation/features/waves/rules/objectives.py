"""Judge a new template by its share of bad requests: against a limit, and against other clusters. Pure.

An objective fails only when the share is above the limit beyond doubt: four standard deviations, so that looking every
ten seconds at noise does not fail it. A cluster is compared with itself before the wave, and with the clusters that
still have the earlier template. It fails if it is worse than each of them: an outage of a service that all clusters
need is not a fault of the template, nor is a cluster that was always worse than others.

Reference: docs/reference/rollout.md#objectives
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt

from federation.planning.waves.waverules import Comparison, Objective

_DEVIATIONS = 4.0
"""Distance of a share from its limit that is no chance."""


class Verdict(IntEnum):
    """What follows from the measured counts, in order of importance."""

    HOLDS = 0
    UNSURE = 1
    """Above the limit, and that may still be chance."""
    NO_DATA = 2
    FAILS = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests or other samples in a window of time, and the bad ones among them."""

    bad: float = 0.0
    total: float = 0.0

    @property
    def share(self) -> float:
        """The share of bad ones."""
        return self.bad / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts by cluster: in the wave's clusters since its gate holds and before it, and in clusters that still wait."""

    new: Mapping[str, Counts]
    before: Mapping[str, Counts]
    waiting: Mapping[str, Counts]
    problem: str = ""
    """Why there is no measurement."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, and a sentence for users."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class _Limit:
    """A share that must not be exceeded, times a factor, and the samples that it was measured with; 0 for none."""

    name: str
    share: float
    factor: float = 1.0
    total: float = 0.0

    @property
    def value(self) -> float:
        return self.share * self.factor


def judge_all(objectives: Iterable[Objective], measured: Mapping[str, Measured]) -> Judgement:
    """Return the most important verdict of all objectives, with the sentences of those that have it."""
    judgements = [judge(each, measured[each.name]) for each in objectives]
    worst = max((each.verdict for each in judgements), default=Verdict.HOLDS)
    return Judgement(worst, "; ".join(each.text for each in judgements if each.verdict is worst))


def judge(objective: Objective, measured: Measured) -> Judgement:
    """Return the verdict about all clusters of the wave together, and about each that has enough samples alone."""
    name = objective.name
    if measured.problem:
        return Judgement(Verdict.NO_DATA, f"{name}: {measured.problem}")
    everywhere = sum_of(measured.new.values())
    if everywhere.total < objective.samples_min:
        text = f"{name}: {everywhere.total:.0f} of at least {objective.samples_min} samples"
        return Judgement(Verdict.NO_DATA, text)
    judged = [_judge_one(objective, "", everywhere, sum_of(measured.before.values()), measured.waiting)]
    if len(measured.new) > 1:
        judged += [
            _judge_one(objective, cluster, counts, measured.before.get(cluster, Counts()), measured.waiting)
            for cluster, counts in sorted(measured.new.items())
            if counts.total >= objective.samples_min
        ]
    # A cluster without an earlier measurement does not make the wave one without data.
    known = [judged[0], *(each for each in judged[1:] if each.verdict is not Verdict.NO_DATA)]
    return max(known, key=lambda each: each.verdict)


def _judge_one(
    objective: Objective, cluster: str, new: Counts, before: Counts, waiting: Mapping[str, Counts]
) -> Judgement:
    where = f" in {cluster}" if cluster else ""
    text = f"{objective.name}: {new.share:.2%} of {new.total:.0f} samples{where} are bad"
    verdicts: list[tuple[Verdict, str]] = []
    if objective.target is not None:
        target = _Limit("the target allows", 1 - objective.target, objective.burn_rate_max)
        verdicts.append((_verdict(new, target), _describe([target])))
    compared = list(_comparisons(objective, before, waiting))
    if compared:
        verdicts.append((min(_verdict(new, each) for each in compared), _describe(compared)))
    elif objective.compare_with:
        wanted = " or ".join(sorted(objective.compare_with))
        verdicts.append((Verdict.NO_DATA, f"nothing to compare with ({wanted}) has {objective.samples_min} samples"))
    worst, why = max(verdicts, key=lambda each: each[0])
    return Judgement(worst, f"{text}; {why}")


def _comparisons(objective: Objective, before: Counts, waiting: Mapping[str, Counts]) -> Iterable[_Limit]:
    factor = 1 + objective.increase_max
    if Comparison.BEFORE in objective.compare_with and before.total >= objective.samples_min:
        yield _Limit("before the wave", before.share, factor, before.total)
    others = sum_of(waiting.values())
    if Comparison.WAITING in objective.compare_with and others.total >= objective.samples_min:
        yield _Limit("in waiting clusters", others.share, factor, others.total)


def _verdict(new: Counts, limit: _Limit) -> Verdict:
    if new.share <= limit.value:
        return Verdict.HOLDS
    # The variance of a share with one more bad sample than was seen: none at all is not certainty.
    spread = _variance(new.share, new.total)
    if limit.total:
        spread += limit.factor**2 * _variance(limit.share, limit.total)
    is_certain = new.share - limit.value > _DEVIATIONS * sqrt(spread)
    return Verdict.FAILS if is_certain else Verdict.UNSURE


def _variance(share: float, total: float) -> float:
    likely = min(share + 1 / total, 1.0)
    return max(likely * (1 - likely), 1 / total) / total


def _describe(limits: Iterable[_Limit]) -> str:
    return ", ".join(
        f"{each.name} {each.share:.2%}" + (f" times {each.factor:g}" if each.factor != 1 else "") for each in limits
    )


def sum_of(counts: Iterable[Counts]) -> Counts:
    """Return all counts together."""
    known = list(counts)
    return Counts(sum(each.bad for each in known), sum(each.total for each in known))
