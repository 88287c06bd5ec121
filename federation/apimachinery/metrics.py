"""Conventions for metrics: latency buckets and the text exposition.

Metrics are recorded only in the loop runner, queue, informer, store, client, framework wrappers and HTTP middleware.
They are named `federation_<layer>_<noun>_<unit>` and created at import with their labels.
"""

import asyncio
import weakref
from collections.abc import Callable
from typing import TypeVar

from prometheus_client import REGISTRY, Gauge, disable_created_metrics, generate_latest

T = TypeVar("T")
# The time of creation of each series would double their number; a restart shows in process_start_time_seconds.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own lack
LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MEMBER_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
"""Fewer, for what is measured per member: each scrape writes them for every one."""
DELIVERY_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


def show(gauge: Gauge, owner: T, value_of: Callable[[T], float]) -> None:
    """Compute the gauge from its owner at each scrape, so that changes cost nothing; 0 when the owner is gone.

    The gauge does not keep its owner: what belongs to a member that left would stay in memory. `value_of` must not
    refer to the owner, either.
    """
    reference = weakref.ref(owner)
    gauge.set_function(lambda: value_of(alive) if (alive := reference()) is not None else 0)


async def to_text(name: str = "") -> bytes:
    """Return the metrics of this process in Prometheus' text format: the one of the name, or all without one.

    1,000 members have 130,000 lines: seconds in which probes of members would time out on the event loop.
    """
    if name:
        return generate_latest(REGISTRY.restricted_registry([name]))
    return await asyncio.to_thread(generate_latest, REGISTRY)
