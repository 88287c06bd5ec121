"""The process in which the host computes a replay for the web UI: an order on standard input, the answer on output.

`web/replaycomparison.py` starts it, with its limits. Its answer is that of `fedctl replay -o json`, or `problem`.
"""

import os
import resource
import sys
from datetime import datetime
from pathlib import Path

import orjson

from federation.admission.deviceselectors import selects
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import FederationError
from federation.apimachinery.resources import Object
from federation.features.catalogue import decision_chain
from federation.plans.recordfiles import read_records
from federation.plans.replays import Selection, compare, to_json
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.replay.logentries import to_us
from federation.scheduling.replay.otherworld import Changes, to_changed_object

_DIFFERENT_MAX = 200
"""Decisions with another placement in the answer; the numbers count all."""


def answer(order: Object) -> Object:
    """Return the comparison that an order asks for; FederationError."""
    now_us = to_us(SystemClock().now())
    until_us = to_us(datetime.fromisoformat(order["until"])) if order["until"] else now_us
    kinds = None if order["kinds"] is None else frozenset((str(group), str(kind)) for group, kind in order["kinds"])
    since_us = to_us(datetime.fromisoformat(order["since"]))
    selection = Selection(since_us, until_us, order["namespace"], kinds, order["project"])
    chain = decision_chain()
    objects = dict(to_changed_object(each, chain) for each in order["objects"])
    added = {f"{name}-like-{number}": name for number, name in enumerate(order["addClusters"], 1)}
    changes = Changes(objects, frozenset(order["withoutClusters"]), added, {}, order["profile"])
    chunks = read_records(Path(order["records"]))
    comparison = compare(chunks, changes, selection, now_us, load_plugins(selects=selects), chain)
    found = to_json(comparison)
    if kinds is not None:  # the use of all CPUs is a number of the fleet
        for pair in (found["total"], *found["byHour"]):
            for side in ("recorded", "other"):
                pair[side].pop("utilisation", None)
    return {**found, "differentCount": len(found["different"]), "different": found["different"][:_DIFFERENT_MAX]}


def main() -> None:
    """Answer one order. It gives way to the control plane for the processor."""
    os.nice(10)
    order = orjson.loads(sys.stdin.buffer.read())
    memory_bytes_max = int(order["memoryBytesMax"])
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes_max, memory_bytes_max))
    try:
        found = answer(order)
    except FederationError as error:
        found = {"problem": str(error)}
    except MemoryError:
        limit = f"{memory_bytes_max >> 20} MiB of memory"
        found = {"problem": f"since: the replay needs more than {limit}; choose a later time, or use fedctl replay"}
    sys.stdout.buffer.write(orjson.dumps(found))


if __name__ == "__main__":
    main()
