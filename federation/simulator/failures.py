"""The failures that `fedctl sim` simulates: commands, and the states that they bring a member into.

`to_command` reads a command from JSON and `to_message` writes it. `control.py` transports messages, `failingmember.py`
executes commands.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.apimachinery.errors import ConfigurationError

LATENCY_S_MAX = 3600.0
PERIOD_S_MIN = 1.0
PERIOD_S_MAX = 86_400.0


class Verb(StrEnum):
    """An action on a member."""

    START = "start"
    STOP = "stop"
    HANG = "hang"
    SLOW = "slow"
    FAIL = "fail"
    FLAP = "flap"
    STATUS = "status"


class MemberState(StrEnum):
    """A failure simulated in a member."""

    RUNNING = "Running"
    STOPPED = "Stopped"
    """Its process was killed: connections are refused. Those of a light member break at their first request."""
    HANGING = "Hanging"
    """It accepts connections and never answers."""
    SLOW = "Slow"
    """Every response and every batch of watch events is delayed."""
    FAILING = "Failing"
    """A share of the requests is answered with 503."""
    FLAPPING = "Flapping"
    """It is stopped and started periodically."""


@dataclass(frozen=True, slots=True)
class FailureCommand:
    """One command for one member; `STATUS` is for all."""

    verb: Verb
    member: str = ""
    latency_s: float = 0.0
    """Of `SLOW`."""
    error_share: float = 0.0
    """Of `FAIL`: share of requests that fail, above 0 and at most 1."""
    period_s: float = 0.0
    """Of `FLAP`: the member is stopped for the first half and runs for the second half."""
    count: int = 0
    """Of `FLAP`: number of periods, after which the member runs; 0 for no end."""


def to_message(command: FailureCommand) -> dict[str, Any]:
    """Return the command as JSON."""
    return {
        "verb": command.verb.value,
        "member": command.member,
        "latencyS": command.latency_s,
        "errorShare": command.error_share,
        "periodS": command.period_s,
        "count": command.count,
    }


def to_command(message: Any) -> FailureCommand:
    """Return the command in a message; ConfigurationError names what is wrong with it."""
    try:
        command = FailureCommand(
            Verb(message["verb"]),
            str(message.get("member") or ""),
            float(message.get("latencyS") or 0),
            float(message.get("errorShare") or 0),
            float(message.get("periodS") or 0),
            int(message.get("count") or 0),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ConfigurationError(f"not a command: {error}") from None
    if command.verb is Verb.SLOW and not 0 < command.latency_s <= LATENCY_S_MAX:
        raise ConfigurationError(f"the latency must be more than 0 and at most {LATENCY_S_MAX:g} s")
    if command.verb is Verb.FAIL and not 0 < command.error_share <= 1:
        raise ConfigurationError("the share of failing requests must be more than 0 and at most 100 %")
    if command.verb is Verb.FLAP and not PERIOD_S_MIN <= command.period_s <= PERIOD_S_MAX:
        raise ConfigurationError(f"the period must be from {PERIOD_S_MIN:g} to {PERIOD_S_MAX:g} s")
    if command.count < 0:
        raise ConfigurationError("the count must not be negative")
    return command
