"""Live pages: a stream of server-sent events that says "changed" when a collection of the screen has changed.

The page then asks for itself again, so there is one way to render it. The first event comes at once: the page may be
older than the stream. A stream ends when the server stops, and after `STREAM_S`, so that its credentials are checked
again; the browser reconnects.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from federation.apimachinery.errors import ApiError, Forbidden
from federation.web.ui.screen import Collection
from federation.web.ui.userapi import UserAPI

STREAM_S = 300
_KEEP_ALIVE_S = 20.0
CHANGED = b"event: changed\ndata: 1\n\n"
KEEP_ALIVE = b": open\n\n"
LATER = b"retry: 60000\n\n"
"""The browser asks again in a minute."""


async def events(
    api: UserAPI, watched: Sequence[Collection], pause_s: float, poll_s: float = 0.0
) -> AsyncGenerator[bytes, None]:
    """Yield the stream until a watch ends, at most one event in `pause_s`, at least one in `poll_s` unless that is 0.

    A page with a collection that the user may not watch is shown again after each keep-alive interval. The stream
    counts as a watch of the user, and it ends with the credentials.
    """
    changed, ended, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
    changed.set()

    def end() -> None:
        ended.set()
        changed.set()

    try:
        held = await api.hold(end)
    except ApiError:
        yield LATER
        return
    timer = asyncio.get_running_loop().call_later(STREAM_S, end)

    async def follow(path: str, query: dict[str, str]) -> None:
        try:
            async for _ in api.changes(path, **query, timeoutSeconds=str(STREAM_S)):
                changed.set()
        except Forbidden:
            refused.set()
            return
        except ApiError:
            return
        end()

    followers = [asyncio.ensure_future(follow(path, dict(query))) for path, query in watched]
    try:
        while not ended.is_set():
            try:
                async with asyncio.timeout(poll_s or _KEEP_ALIVE_S):
                    await changed.wait()
            except TimeoutError:
                if not (poll_s or refused.is_set()):
                    yield KEEP_ALIVE
                    continue
            changed.clear()
            yield CHANGED
            await asyncio.sleep(pause_s)
    finally:
        held.close()
        timer.cancel()
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)
