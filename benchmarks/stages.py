"""Where the time of a delivery goes, by the control plane's own metrics: queues, reconciles, commits, requests.

The figures are means per object, in milliseconds. A reconcile contains the commits and the requests that it waits for.
"""

from collections.abc import Collection, Mapping

from scraped import scrape

from federation.client.http import HTTPClient

_STAGES: Mapping[str, tuple[str, Mapping[str, Collection[str]]]] = {
    "user_request": ("federation_server_request_duration_seconds", {"verb": ("create",)}),
    "federate_queue": ("federation_runtime_queue_wait_seconds", {"queue": ("federate",)}),
    "federate": ("federation_runtime_reconcile_seconds", {"controller": ("federate",)}),
    "decision": ("federation_scheduling_decision_duration_seconds", {}),
    "sync_queue": ("federation_runtime_queue_wait_seconds", {"queue": ("sync",)}),
    "sync": ("federation_runtime_reconcile_seconds", {"controller": ("sync",)}),
    "member_write": ("federation_dispatch_operation_seconds", {}),
    "commit": ("federation_store_commit_seconds", {}),
}

Stages = Mapping[str, tuple[float, float]]
"""Seconds and number of observations by stage, since the start of the process."""


async def read_stages(host: HTTPClient) -> Stages:
    total = (await scrape(host)).total
    return {
        stage: (total(f"{metric}_sum", **labels), total(f"{metric}_count", **labels))
        for stage, (metric, labels) in _STAGES.items()
    }


def per_object(before: Stages, after: Stages, count: int) -> dict[str, float]:
    """Return the time of each stage per object, and how often it occurred per object."""
    results = {}
    for stage, (seconds, observed) in after.items():
        results[f"stage_{stage}_ms"] = round((seconds - before[stage][0]) / count * 1000, 2)
        results[f"stage_{stage}_count"] = round((observed - before[stage][1]) / count, 2)
    return results
