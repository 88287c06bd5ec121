"""Print the outcome of a replay."""

from typing import Any

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339_micro
from federation.scheduling.engine import Placements
from federation.scheduling.replay.logentries import Result, from_us
from federation.scheduling.replay.otherworld import Twofold
from federation.scheduling.replay.redecide import Redecision, Verdict
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_wrapped

_NAMED_MAX = 20


def print_verdict(verdict: Verdict, output: str, took_s: float) -> None:
    """Print how many decisions came out as recorded, and those that did not."""
    if output != "table":
        print_document(to_json(verdict), output)
        return
    console = make_console()
    if not verdict.decisions:
        console.print("no decision was recorded in this time")
        return
    share = f"{verdict.equal / verdict.decisions:.2%}".replace(".00%", "%")
    made = to_count(verdict.decisions, "decision")
    console.print(f"{made} made again in {took_s:.2f} s: {verdict.equal} equal ({share})")
    if verdict.with_plugins:
        console.print(f"{verdict.with_plugins} of them with recorded answers of remote plugins")
    for reason, count in verdict.impossible.items():
        console.print(f"{to_count(count, 'decision')} not made again: {reason}")
    for each in verdict.different[:_NAMED_MAX]:
        print_wrapped(console, f"{to_rfc3339_micro(from_us(each.entry.at_us))} ", describe(each))
    if len(verdict.different) > _NAMED_MAX:
        console.print(f"and {len(verdict.different) - _NAMED_MAX} more; -o json has all of them")


def describe(again: Redecision) -> str:
    """Return the object of a decision, and how the outcome differs."""
    template = again.projected["template"]
    name = (template.get("metadata") or {}).get("name")
    title = f"{template.get('kind')} {name}" + (f" in {again.entry.key[0]}" if again.entry.key[0] else "")
    if again.again is None:
        return f"{title}: {again.problem}"
    before, after = _to_text(again.entry.result), _to_text(again.again)
    if before == after:
        return f"{title}: the same placement, by other scores or steps"
    return f"{title}: recorded {before}; now {after}"


def describe_change(each: Twofold) -> str:
    """Return the object of a decision, and its placement in both worlds."""
    template = each.projected["template"]
    name = (template.get("metadata") or {}).get("name")
    title = f"{template.get('kind')} {name}" + (f" in {each.key[0]}" if each.key[0] else "")
    recorded = _placed(each.recorded_after) or each.recorded.outcome
    return f"{title}: recorded {recorded}; here {_placed(each.other_after) or each.other.outcome} ({each.other.reason})"


def _to_text(result: Result) -> str:
    return f"{_placed(result.placements) or result.outcome} ({result.reason})"


def _placed(placements: Placements) -> str:
    return ", ".join(name if count is None else f"{name} {count}" for name, count in sorted(placements.items()))


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the outcome as JSON values; keys are stable."""
    return {
        "decisions": verdict.decisions,
        "equal": verdict.equal,
        "withRemotePlugins": verdict.with_plugins,
        "byOutcome": dict(verdict.by_outcome),
        "notMadeAgain": dict(verdict.impossible),
        "different": [
            {
                "at": to_rfc3339_micro(from_us(each.entry.at_us)),
                "namespace": each.entry.key[0],
                "kind": each.projected["template"].get("kind"),
                "name": (each.projected["template"].get("metadata") or {}).get("name"),
                "problem": each.problem,
                "recorded": _result(each.entry.result),
                "now": _result(each.again) if each.again is not None else None,
            }
            for each in verdict.different
        ],
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "outcome": result.outcome,
        "reason": result.reason,
        "placements": result.placements,
        "unplaced": result.unplaced,
        "digest": result.digest,
    }
