"""Drive what asks remote plugins to its end: the engine yields calls, somebody makes them, the answers go back in.

The engine, and everything on top of it that is pure, knows no network (D6); this is the loop between it and whoever can
call (`webhooks.py` over HTTP). Used by the reconciler for one decision, and by `fedctl plan` for many.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from federation.scheduling.framework.types import Exchange, PluginRequest, PluginResponse

T = TypeVar("T")


class PluginCaller(Protocol):
    """Whoever makes the calls of remote plugins."""

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Make all calls, at the same time, and return the responses in the same order; never raises."""
        ...


async def drive(run: Exchange[T], caller: PluginCaller | None) -> tuple[T, bool]:
    """Return the result of the exchange, and whether it had anything to ask; without a caller every call fails."""
    has_asked = False
    try:
        requests = next(run)
        while True:
            has_asked = True
            requests = run.send(await _call(requests, caller))
    except StopIteration as stop:
        result: T = stop.value
        return result, has_asked


async def _call(requests: Sequence[PluginRequest], caller: PluginCaller | None) -> Sequence[PluginResponse]:
    if caller is None:
        return [PluginResponse(0, error="remote plugins are switched off")] * len(requests)
    return await caller.call(requests)
