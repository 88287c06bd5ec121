"""A delay before every response and every batch of watch events: the behaviour of a slow member cluster.

`Delay.wrap` puts it around an API server's app. `memberprocess.py` sets it while the member runs.
"""

from federation.apimachinery.clock import Clock
from federation.apiserver.http.asgi import ASGIApp, Receive, Scope, Send


class Delay:
    """A delay that can change at any time; watches that are open obey it, too."""

    def __init__(self, clock: Clock) -> None:
        self.seconds = 0.0
        self._clock = clock

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return an app that answers as `app` does, but later."""

        async def delayed(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_late(message: Scope) -> None:
                if message.get("more_body"):  # a part of a stream; other responses were delayed before they started
                    await self._pass()
                await send(message)

            await self._pass()
            await app(scope, receive, send_late)

        return delayed

    async def _pass(self) -> None:
        if self.seconds > 0:
            await self._clock.sleep(self.seconds)
