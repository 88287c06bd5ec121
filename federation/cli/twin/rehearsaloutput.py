"""Print what happened in a rehearsal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.markup import escape

from federation.api.resources import FEDERATED_OBJECTS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.planning.status.schedulingsummary import describe_move
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_field, print_wrapped
from federation.twin.fleetcopy import Fleet
from federation.twin.happenings import Move
from federation.twin.script import Script
from federation.twin.steps import Rehearsal, Seen, numbers_of
from federation.twin.twin import Twin

_NAMED_MAX = 20
_WIDTH = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rehearsal that has ended. `took_s`: seconds for the copy and for the rehearsal."""

    fleet: Fleet
    twin: Twin
    script: Script
    rehearsal: Rehearsal
    began_at: datetime
    took_s: tuple[float, float]
    problems: Sequence[str]

    def since(self, at: datetime) -> float:
        """Return a time as seconds from the beginning."""
        return (at - self.began_at).total_seconds()


def print_outcome(outcome: Outcome, output: str) -> None:
    """Print the numbers, the steps, the moves and the expectations."""
    if output != "table":
        print_document(to_json(outcome), output)
        return
    console = make_console()
    seen, numbers = outcome.twin.observation, numbers_of(outcome.twin)
    copied = sum(1 for _ in outcome.fleet.of(FEDERATED_OBJECTS))
    speed = outcome.script.end_s / max(outcome.took_s[1], 1e-9)
    what = f"{to_count(len(outcome.twin.members), 'cluster')} and {to_count(copied, 'object')}"
    took = f"{_to_text(outcome.script.end_s)} in {outcome.took_s[1]:.1f} s, {speed:.0f} times as fast"
    console.print(f"twin of {what}, as of {to_rfc3339(outcome.fleet.at)}: {took}")
    for problem in outcome.problems:
        print_wrapped(console, "note: ", problem)
    for step in outcome.rehearsal.happened:
        text = f"{step.what}: {step.problem}" if step.problem else step.what
        print_wrapped(console, f"{_to_text(step.at_s)}  ", text)
    for title, text in (
        *((("arrived", to_count(arrived, "manifest")),) if (arrived := outcome.rehearsal.arrived) else ()),
        ("placed", f"{to_count(len(seen.placements), 'object')} for the first time"),
        ("moved", f"{to_count(seen.moved_replicas, 'replica')} of {to_count(len(seen.moves), 'decision')}"),
        ("unplaced", _over_time(seen.unplaced.now, numbers["unplacedReplicaMinutes"])),
        ("not running", _over_time(seen.waiting.now, numbers["waitingReplicaMinutes"])),
        ("unreachable", _over_time(seen.unreachable.now, numbers["unreachableReplicaMinutes"])),
        ("holds", ", ".join(f"{cause} ({count})" for _, cause, count in seen.holds.values()) or "none"),
        ("cost", f"{seen.hourly_cost(is_at_start=True):.4g} → {seen.hourly_cost():.4g} per hour"),
    ):
        print_field(console, title, text, width=_WIDTH)
    for (namespace, name), states in seen.rollouts.items():
        told = ", ".join(f"{state} at {_to_text(outcome.since(at))}" for at, state in states)
        print_field(console, "rollout", f"{namespace}/{name}: {told}", width=_WIDTH)
    _print_moves(console, outcome)
    for refused in outcome.rehearsal.refused[:_NAMED_MAX]:
        print_wrapped(console, "refused: ", refused)
    for each in outcome.rehearsal.seen:
        print_field(console, "expected", describe(each), width=_WIDTH)


def _print_moves(console: Console, outcome: Outcome) -> None:
    moves = outcome.twin.observation.moves
    for move in moves[:_NAMED_MAX]:
        print_wrapped(console, f"{_to_text(outcome.since(move.at))}  ", escape(_describe_move(move)))
    if len(moves) > _NAMED_MAX:
        console.print(f"and {len(moves) - _NAMED_MAX} more moves; -o json has all of them")


def describe(seen: Seen) -> str:
    """Return an expectation and what was seen."""
    expected = seen.expectation
    when = "at the end" if expected.at_s == float("inf") else f"at {_to_text(expected.at_s)}"
    verdict = "as expected" if seen.holds else "NOT AS EXPECTED"
    return f"{expected.number} {when}: {seen.value:g}, at most {expected.most:g}: {verdict}"


def _describe_move(move: Move) -> str:
    _, kind, namespace, name = move.identity
    where = f" in {namespace}" if namespace else ""
    return f"{kind} {name}{where}: {describe_move(move.before, move.after)}; cause: {move.cause}"


def _over_time(now: float, minutes: float) -> str:
    return f"{minutes:.1f} replica-minutes; {to_count(round(now), 'replica')} at the end"


def _to_text(seconds: float) -> str:
    """Return a time as 1h02m03s, without leading zeros."""
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(int(whole.total_seconds()), 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes:02d}m{left:02d}s"
    return f"{minutes}m{left:02d}s" if minutes else f"{left}s"


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as JSON values; keys are stable."""
    seen, rehearsal = outcome.twin.observation, outcome.rehearsal
    return {
        "copiedAt": to_rfc3339(outcome.fleet.at),
        "clusters": sorted(outcome.twin.members),
        "seconds": outcome.script.end_s,
        "tookSeconds": round(outcome.took_s[1], 3),
        "copyTookSeconds": round(outcome.took_s[0], 3),
        "notes": list(outcome.problems),
        "numbers": numbers_of(outcome.twin),
        "costPerHourAtStart": seen.hourly_cost(is_at_start=True),
        "outcomes": dict(seen.outcomes),
        "arrivals": {"applied": rehearsal.arrived, "refused": rehearsal.refused},
        "steps": [{"at": each.at_s, "what": each.what, "problem": each.problem} for each in rehearsal.happened],
        "placements": [_move_to_json(outcome, each) for each in seen.placements],
        "moves": [_move_to_json(outcome, each) for each in seen.moves],
        "holds": [
            {"at": outcome.since(at), "name": name, "cause": cause, "objects": count}
            for name, (at, cause, count) in seen.holds.items()
        ],
        "rollouts": [
            {
                "namespace": namespace,
                "name": name,
                "states": [{"at": outcome.since(at), "state": state} for at, state in states],
            }
            for (namespace, name), states in seen.rollouts.items()
        ],
        "expectations": [
            {
                "at": None if each.expectation.at_s == float("inf") else each.expectation.at_s,
                "number": each.expectation.number,
                "most": each.expectation.most,
                "value": each.value,
                "holds": each.holds,
            }
            for each in rehearsal.seen
        ],
    }


def _move_to_json(outcome: Outcome, move: Move) -> dict[str, Any]:
    group, kind, namespace, name = move.identity
    return {
        "at": outcome.since(move.at),
        "group": group,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "before": dict(move.before),
        "after": dict(move.after),
        "replicas": move.left,
        "cause": move.cause,
    }
