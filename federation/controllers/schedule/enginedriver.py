"""Drive an exchange with remote plugins: send the calls that the engine yields, and return it the responses.

The engine is pure; this loop connects it with a caller (`remoteplugins.py` over HTTP). The decider drives one decision,
`fedctl plan` many.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from federation.scheduling.framework.types import Exchange, PluginRequest, PluginResponse

T = TypeVar("T")


class PluginCaller(Protocol):
    """Calls remote plugins."""

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Make all calls concurrently and return the responses in the same order; never raises."""
        ...


async def drive(run: Exchange[T], caller: PluginCaller | None) -> tuple[T, bool]:
    """Return the result of the exchange, and whether it made any call; without a caller every call fails."""
    has_called = False
    try:
        requests = next(run)
        while True:
            has_called = True
            requests = run.send(await _call(requests, caller))
    except StopIteration as stop:
        result: T = stop.value
        return result, has_called


async def _call(requests: Sequence[PluginRequest], caller: PluginCaller | None) -> Sequence[PluginResponse]:
    if caller is None:
        return [PluginResponse(0, error="remote plugins are switched off")] * len(requests)
    return await caller.call(requests)
