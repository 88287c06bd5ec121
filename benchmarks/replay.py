"""Measure what records of decisions cost, and how fast they are replayed.

`python benchmarks/replay.py [--clusters 500] [--workloads 2000] [--decisions 10000] [--reports 2] [--seed N]`.
The decisions are those of `scheduling.py`: half of them about new objects, half scale one. Before each decision
`--reports` members report changed resources. The same decisions are made without and with the recorder, by turns of
100, in CPU time. What is left for later is done after each turn, as the journal does twice a second, and counted apart.
Percentages are medians over the turns: both sides of a turn make the same decisions within a fifth of a second, so that
other load on the machine changes both alike, or one turn among many. The records are then decided again in as many processes as there are processors, as `fedctl replay` does.

The last line is one JSON object: `recording_percent` is what deciding costs more, `recording_total_percent` with what is
done later, of which `compress_ms` is in another thread and lets the event loop run. `bytes_per_decision` is what chunks
have, `replay_s_100k` the time for 100,000 decisions, and `equal_percent` must be 100.
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

from report import print_report

from federation import __version__
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.memory import tune_collector
from federation.cli.replay.command import Period, redecide_all
from federation.scheduling.answers import Due
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.engine import Decision
from federation.scheduling.replay.logentries import Chunk, Header
from federation.scheduling.replay.recorder import InputRecorder
from scheduling import CLOCKS, POLICIES, Load, a_policy

GOALS = {
    "recording_percent": ("<=", 5.0),
    "bytes_per_decision": ("<=", 1_000),
    "equal_percent": (">=", 100.0),
    "replay_s_100k": ("<=", 60.0),
}
DECISIONS_PER_FLUSH = 100
DECISIONS_PER_CHUNK = 500
"""As many as are made in some seconds of a busy fleet."""


class RecordedLoad(Load):
    """A load with a recorder."""

    recorder: InputRecorder | None = None

    def on_decision(self, attempt: SchedulingAttempt, due: Due, decision: Decision) -> None:
        if self.recorder is not None:
            self.recorder.decided(attempt, due, decision)

    def on_report(self, source: dict[str, Any]) -> None:
        if self.recorder is not None:
            self.recorder.observe(FEDERATED_CLUSTERS, source, source)


def with_recorder(load: RecordedLoad) -> InputRecorder:
    """Begin to record the world of a load."""
    load.recorder = recorder = InputRecorder()
    recorder.begin(Header(__version__))
    for config in default_type_configs():
        recorder.observe(FEDERATED_TYPE_CONFIGS, None, config)
    for source in load.sources:
        recorder.observe(FEDERATED_CLUSTERS, None, source)
    for number in range(POLICIES):
        recorder.observe(PROPAGATION_POLICIES, None, a_policy(number, "", is_spread=False))
    return recorder


@dataclass
class Spent:
    """CPU seconds, in all or of one turn."""

    deciding_s: float = 0.0
    later_s: float = 0.0
    compressing_s: float = 0.0

    def add(self, other: "Spent") -> None:
        self.deciding_s += other.deciding_s
        self.later_s += other.later_s
        self.compressing_s += other.compressing_s


class Side:
    """One of the two loads, with what its turns took."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.load = RecordedLoad(options.clusters, options.seed, clock=CLOCKS["cpu"])
        self.placed: list[dict[str, Any]] = []
        self.chunks: list[Chunk] = []
        self.turns: list[Spent] = []
        self.total = Spent()
        self._made = 0
        self._options = options

    def turn(self) -> None:
        """Make decisions until records are flushed."""
        spent, options = Spent(), self._options
        decide(
            self.load,
            range(self._made, self._made + DECISIONS_PER_FLUSH),
            self.placed,
            options.workloads,
            options.reports,
            self.chunks,
            spent,
        )
        self._made += DECISIONS_PER_FLUSH
        self.turns.append(spent)
        self.total.add(spent)


def decide(
    load: RecordedLoad,
    numbers: range,
    placed: list[dict[str, Any]],
    workloads: int,
    reports: int,
    chunks: list[Chunk],
    spent: Spent,
) -> None:
    """Make decisions, and records; reports do not count. `placed` are the objects with a placement."""
    for number in numbers:
        for _ in range(reports):
            load.report(load.rng.randrange(len(load.sources)))
        is_new = len(placed) < workloads and number % 2 == 0
        federated = load.an_object(number) if is_new else placed.pop(load.rng.randrange(len(placed)))
        patch, took_s, _ = load.decide(federated)
        spent.deciding_s += took_s
        placed.append(load.rescaled(federated, patch))
        if load.recorder is not None and number % DECISIONS_PER_FLUSH == DECISIONS_PER_FLUSH - 1:
            started_s = time.process_time()
            while load.recorder.encode():
                pass
            spent.later_s += time.process_time() - started_s
        if load.recorder is not None and number % DECISIONS_PER_CHUNK == DECISIONS_PER_CHUNK - 1:
            started_s = time.process_time()
            chunk = load.recorder.take()
            spent.compressing_s += time.process_time() - started_s
            if chunk is not None:
                chunks.append(chunk)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--workloads", type=int, default=2_000)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--reports", type=int, default=2, help="reports of members per decision")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    plain, recorded = Side(options), Side(options)
    recorder = with_recorder(recorded.load)
    tune_collector()  # as the control plane does
    for number in range(max(1, options.decisions // DECISIONS_PER_FLUSH)):
        for side in (plain, recorded) if number % 2 else (recorded, plain):
            side.turn()
    chunks, without, recording = recorded.chunks, plain.total, recorded.total
    if (last := recorder.take()) is not None:
        chunks.append(last)
    decisions = sum(chunk.decisions for chunk in chunks)
    started_s = time.perf_counter()
    verdict = redecide_all(chunks, Period(0, 2**62))
    took_s = time.perf_counter() - started_s
    pairs = list(zip(plain.turns, recorded.turns, strict=True))[len(plain.turns) // 10 :]  # caches are warm then
    path = statistics.median([there.deciding_s / here.deciding_s for here, there in pairs])
    later = statistics.median([there.later_s / here.deciding_s for here, there in pairs])
    compressing = recording.compressing_s / without.deciding_s
    results = {
        "decisions": decisions,
        "decide_ms": round(without.deciding_s / decisions * 1_000, 3),
        "decide_recorded_ms": round(recording.deciding_s / decisions * 1_000, 3),
        "later_ms": round(recording.later_s / decisions * 1_000, 3),
        "compress_ms": round(recording.compressing_s / decisions * 1_000, 3),
        "recording_percent": round((path - 1) * 100, 1),
        "recording_total_percent": round((path - 1 + later + compressing) * 100, 1),
        "bytes_per_decision": round(sum(len(chunk.content) for chunk in chunks) / decisions),
        "equal_percent": 100 * verdict.equal / verdict.decisions,
        "replay_s": round(took_s, 2),
        "replay_s_100k": round(took_s / decisions * 100_000, 1),
    }
    for name, value in results.items():
        print(f"{name:>24} {value:>12}")
    shape = {name: getattr(options, name) for name in ("clusters", "workloads", "decisions", "reports", "seed")}
    print_report("replay", shape, results, GOALS)


if __name__ == "__main__":
    main()
