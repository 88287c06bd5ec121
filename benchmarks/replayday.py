"""Replay a day of a fleet with the real command: `fedctl replay --from FILE`.

`python benchmarks/replayday.py [--clusters 500] [--workloads 20000] [--decisions 100000] [--reports 2] [--turns 3]`.
The decisions are those of `replay.py`, spread evenly over 24 hours: until there are all workloads, every second one is
about a new object, the others scale one. Before each decision `--reports` members report changed resources. They are
made once, with records, which takes some minutes; `--records FILE` keeps the records, or uses those that are there.

The command then decides all of them again, `--turns` times, in a process of its own with its workers. The last line is
one JSON object: `wall_s` from the start of the command to its end, the processors' time of all its processes, the most
memory of one of them, `equal_percent`, which must be 100, and the size of the records. Medians of the turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
from replay import RecordedLoad, Spent, decide, with_recorder
from report import print_report

from federation.apimachinery.memory import tune_collector
from federation.plans.recordfiles import read_records, write_records
from federation.scheduling.replay.logentries import Chunk
from scheduling import CLOCKS

GOALS = {"wall_s": ("<=", 60.0), "bytes_per_decision": ("<=", 1_000), "equal_percent": (">=", 100.0)}
DAY_S = 24 * 3600


def record(options: argparse.Namespace) -> list[Chunk]:
    """Make the decisions of a day, and return their records."""
    load = RecordedLoad(options.clusters, options.seed, clock=CLOCKS["cpu"])
    load.period_s = DAY_S / options.decisions
    recorder = with_recorder(load)
    chunks: list[Chunk] = []
    tune_collector()  # as the control plane does
    decide(load, range(options.decisions), [], options.workloads, options.reports, chunks, Spent())
    if (last := recorder.take()) is not None:
        chunks.append(last)
    return chunks


def replay(records: Path) -> dict[str, float]:
    """Run the command once."""
    command = [str(Path(sys.executable).with_name("fedctl")), "replay", "--from", str(records), "-o", "json"]
    started_s = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer = orjson.loads(process.stdout.read())
        _, _, used = os.wait4(process.pid, 0)
    return {
        "wall_s": time.perf_counter() - started_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
        "equal_percent": 100 * answer["equal"] / answer["decisions"],
        "decisions": answer["decisions"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--workloads", type=int, default=20_000)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--reports", type=int, default=2, help="reports of members per decision")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=Path, help="keep the records there, or use them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = options.records or Path(folder, "day.records")
        if not records.exists():
            write_records(record(options), records)
        chunks = read_records(records)
        turns = [replay(records) for _ in range(options.turns)]
    results = {name: statistics.median([turn[name] for turn in turns]) for name in turns[0]}
    results["segments"] = len({chunk.segment for chunk in chunks})
    results["bytes_per_decision"] = round(sum(len(chunk.content) for chunk in chunks) / results["decisions"])
    for name, value in results.items():
        print(f"{name:>24} {value:>12,.2f}")
    names = ("clusters", "workloads", "decisions", "reports", "turns", "seed")
    print_report("replayday", {name: getattr(options, name) for name in names}, results, GOALS)


if __name__ == "__main__":
    main()
