"""Commands of `fedctl sim` as messages."""

from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.simulator.failures import FailureCommand, Verb, to_command, to_message


@pytest.mark.parametrize(
    "command",
    [
        FailureCommand(Verb.STOP, "member-1"),
        FailureCommand(Verb.SLOW, "member-1", latency_s=0.5),
        FailureCommand(Verb.FAIL, "member-1", error_share=0.25),
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
        ({"verb": "fail", "member": "member-1"}, "the share of failing requests must be"),
        ({"verb": "fail", "member": "member-1", "errorShare": 1.5}, "the share of failing requests must be"),
        ({"verb": "flap", "member": "member-1", "periodS": 0.1}, "the period must be"),
        ({"verb": "flap", "member": "member-1", "periodS": float("inf")}, "the period must be"),
        ({"verb": "flap", "member": "member-1", "periodS": 2, "count": -1}, "the count must not be negative"),
        ({"verb": "flap", "member": "member-1", "periodS": 2, "count": float("inf")}, "not a command"),
    ],
)
def test_a_message_that_is_no_command_is_refused(message: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        to_command(message)
