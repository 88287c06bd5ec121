"""Commands of `fedctl sim` as messages, and the delay of slow members."""

import asyncio
from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.http.asgi import Receive, Scope, Send
from federation.simulator.delay import Delay
from federation.simulator.failures import FailureCommand, Verb, to_command, to_message


@pytest.mark.parametrize(
    "command",
    [
        FailureCommand(Verb.STOP, "member-1"),
        FailureCommand(Verb.SLOW, "member-1", latency_s=0.5),
        FailureCommand(Verb.FLAP, "member-1", period_s=20, count=3),
        FailureCommand(Verb.STATUS),
    ],
    ids=lambda command: command.verb.value,
)
def test_a_command_survives_its_message(command: FailureCommand) -> None:
    assert to_command(to_message(command)) == command


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (None, "not a command"),
        ([], "not a command"),
        ({}, "not a command"),
        ({"verb": "explode", "member": "member-1"}, "not a command: 'explode'"),
        ({"verb": "slow", "member": "member-1", "latencyS": "soon"}, "not a command"),
        ({"verb": "slow", "member": "member-1", "latencyS": [2]}, "not a command"),
        ({"verb": "slow", "member": "member-1"}, "the latency must be"),
        ({"verb": "slow", "member": "member-1", "latencyS": float("nan")}, "the latency must be"),
        ({"verb": "flap", "member": "member-1", "periodS": 0.1}, "the period must be"),
        ({"verb": "flap", "member": "member-1", "periodS": float("inf")}, "the period must be"),
        ({"verb": "flap", "member": "member-1", "periodS": 2, "count": -1}, "the count must not be negative"),
        ({"verb": "flap", "member": "member-1", "periodS": 2, "count": float("inf")}, "not a command"),
    ],
)
def test_a_message_that_is_no_command_is_refused(message: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        to_command(message)


async def test_a_delay_applies_to_responses_and_to_watches_that_are_open() -> None:
    clock = ManualClock()
    delay = Delay(clock)
    sent: list[tuple[float, bytes]] = []
    events = asyncio.Queue[bytes]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while event := await events.get():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    async def receive() -> Scope:
        raise AssertionError("the app reads no body")

    async def send(message: Scope) -> None:
        sent.append((clock.monotonic(), message["body"]))

    request = asyncio.create_task(delay.wrap(app)({"type": "http"}, receive, send))
    events.put_nowait(b"first")
    await clock.advance(0)
    assert sent == [(0, b"first")]
    delay.seconds = 2
    events.put_nowait(b"second")
    await clock.advance(0)
    await clock.advance(1)
    delay.seconds = 0
    await clock.advance(1)
    events.put_nowait(b"")
    await clock.advance(0)
    assert sent == [(0, b"first"), (2, b"second"), (2, b"end")]
    await request

    delay.seconds = 3
    events.put_nowait(b"")
    late = asyncio.create_task(delay.wrap(app)({"type": "http"}, receive, send))
    await clock.advance(0)
    await clock.advance(3)
    assert sent[-1] == (5, b"end")
    await late
