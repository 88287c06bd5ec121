"""One decision on the terminal: what it was made under, every cluster with scores or rejection, the division.

It prints an explanation of `scheduling/explain.py`; `fedctl why` and `fedctl plan --explain` use it. Names of triggers
are put into words; `-o json` has them as they are stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.cli.printing import a_table, print_field, print_table, print_wrapped, to_count
from federation.scheduling.explain import ClusterRow, in_force, is_in_force, rows
from federation.scheduling.triggers import describe_deferral, describe_triggers

_ALIKE_MAX = 10
"""Clusters that are listed of those that were rejected alike."""
_AMOUNTS_MAX = 50
"""Clusters of which one line names an amount; `-o json` has them all."""
_ALIKE_MIN = 2
"""Scored clusters from which on scores that are the same everywhere are told once."""


def print_title(console: Console, target: str, namespace: str, outcome: str) -> None:
    """Print the first line: which object, and how its decision ended."""
    where = f" in {namespace}" if namespace else ""
    console.print(f"[bold]{escape(target)}[/bold]{where}: [bold]{outcome}[/bold]")


def print_reason(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print why it was decided so; what was left aside is said in words."""
    if reason := str(explanation.get("reason") or ""):
        print_field(console, "reason", describe_deferral(reason))


def print_facts(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason of a decision and what it was made under."""
    print_reason(console, explanation)
    for label, value in _facts(explanation):
        print_field(console, label, value)


def print_scores(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print every cluster of a decision with scores or rejection, and the division of replicas."""
    listed = [row for row in rows(explanation) if _is_telling(row)]
    if listed:
        console.print()
        alike = _alike(listed)
        print_table(console, _table(listed, alike, explanation))
        if alike:
            text = ", ".join(_score(plugin, score, _weights(explanation)) for plugin, score in alike.items())
            print_wrapped(console, "same for all: ", text)
    _print_spread(console, explanation)
    _print_division(console, explanation)


def _is_telling(row: ClusterRow) -> bool:
    """Say whether anything is known of the cluster: when a decision failed early nothing is, of most."""
    return row.is_selected or row.was_selected or row.total is not None or bool(row.rejected_by or row.remarks)


def _facts(explanation: Mapping[str, Any]) -> list[tuple[str, str]]:
    unit = explanation.get("unit") or {}
    facts = []
    if policy := explanation.get("policy"):
        facts.append(("policy", _policy(policy)))
    if explanation.get("profile"):
        facts.append(("profile", str(explanation["profile"])))
    if unit.get("mode"):
        wanted = unit.get("desiredReplicas")
        mode = str(unit["mode"]) + (f", {to_count(wanted, 'replica')}" if wanted is not None else "")
        facts.append(("mode", "; ".join(filter(None, (mode, explanation.get("copiedBecause"))))))
    if because := explanation.get("because"):
        facts.append(("changed", describe_triggers(because)))
    for annotation, reason in (explanation.get("ignoredAnnotations") or {}).items():
        facts.append(("ignored", f"annotation {annotation}: {reason}"))
    return facts


def _policy(policy: Mapping[str, str]) -> str:
    if policy.get("namespace"):
        return f"PropagationPolicy {policy['namespace']}/{policy['name']}"
    return f"ClusterPropagationPolicy {policy['name']}"


def _alike(listed: list[ClusterRow]) -> dict[str, int]:
    """Return the plugins that gave all of several clusters the same score: what need not be said of each."""
    scored = [{plugin: score for plugin, (_, score) in row.scores.items()} for row in listed if row.scores]
    if len(scored) < _ALIKE_MIN:
        return {}
    return {plugin: score for plugin, score in scored[0].items() if all(one.get(plugin) == score for one in scored)}


def _weights(explanation: Mapping[str, Any]) -> dict[str, int]:
    return {part["plugin"]: part["weight"] for part in (explanation.get("scores") or {}).get("plugins") or ()}


def _table(listed: list[ClusterRow], alike: Mapping[str, int], explanation: Mapping[str, Any]) -> Table:
    table = a_table()
    table.add_column("CLUSTER", no_wrap=True)
    for heading in ("REPLICAS", "BEFORE", "SCORE"):
        table.add_column(heading, justify="right")
    table.add_column("WHY", overflow="fold")
    weights, placed = _weights(explanation), in_force(explanation)
    is_over = is_in_force(explanation)
    told: Counter[tuple[str, ...]] = Counter()
    for row in listed:
        if row.rejected_by and row.name not in placed:
            told[row.rejected_by, *row.reasons] += 1
            if told[row.rejected_by, *row.reasons] > _ALIKE_MAX:
                continue
        is_kept = row.name in placed and not is_over
        table.add_row(
            row.name,
            _replicas(placed.get(row.name), is_present=row.name in placed),
            _replicas(row.previous, is_present=row.was_selected),
            "-" if row.total is None else str(row.total),
            escape(_reason(row, _verdict(row, alike, weights, is_over=is_over), is_kept=is_kept)),
        )
    for (plugin, *reasons), count in told.items():
        if count > _ALIKE_MAX:
            more = f"{count - _ALIKE_MAX} more"
            table.add_row(more, "-", "-", "-", escape(f"rejected by {plugin}: {'; '.join(reasons)}"))
    return table


def _replicas(count: int | None, *, is_present: bool) -> str:
    if not is_present:
        return "-"
    return "all" if count is None else str(count)


def _reason(row: ClusterRow, verdict: str, *, is_kept: bool) -> str:
    remarks = (f"{plugin}: {'; '.join(said)}" for plugin, said in row.remarks.items())
    return "; ".join(filter(None, (verdict, *remarks, "stays as it was" if is_kept else "")))


def _verdict(row: ClusterRow, alike: Mapping[str, int], weights: Mapping[str, int], *, is_over: bool) -> str:
    """Return how the cluster fared; `is_over`: the decision came to its end, and selected clusters or not."""
    if row.rejected_by:
        return f"rejected by {row.rejected_by}: {'; '.join(row.reasons)}"
    own = {plugin: score for plugin, (_, score) in row.scores.items() if plugin not in alike}
    scores = ", ".join(_score(plugin, score, weights) for plugin, score in own.items())
    if row.total is None and not row.is_selected:
        return ""
    said = "available" if not is_over else "selected" if row.is_selected else "available, not selected"
    return f"{said} ({scores})" if scores else said


def _score(plugin: str, normalised: int, weights: Mapping[str, int]) -> str:
    weight = weights.get(plugin, 1)
    return f"{plugin} {normalised}" if weight == 1 else f"{plugin} {weight} * {normalised}"


def _print_spread(console: Console, explanation: Mapping[str, Any]) -> None:
    constraints = explanation.get("topology")
    if not constraints:
        return
    console.print("\n[bold]topology spread[/bold]")
    for entry in constraints:
        few = f", minDomains {entry['minDomains']}" if "minDomains" in entry else ""
        print_wrapped(
            console,
            f"  {entry['topologyKey']}: ",
            f"{_amounts(entry['domains'])}; skew {entry['skew']}"
            f" (maxSkew {entry['maxSkew']}{few}, {entry['whenUnsatisfiable']})",
        )
        if without := entry.get("withoutLabel"):
            print_wrapped(console, "    ", f"{without} in clusters without this label")
        if closed := entry.get("notCounted"):
            print_wrapped(console, "    ", f"not counted, because unready or tainted: {', '.join(closed)}")
        if barred := entry.get("notAllowed"):
            print_wrapped(console, "    ", f"not counted, because policy or user want none there: {', '.join(barred)}")
    if because := explanation.get("unplacedBecause"):
        print_wrapped(console, "  ", f"{explanation['unplaced']} without a place within {because}")


def _print_division(console: Console, explanation: Mapping[str, Any]) -> None:
    division = explanation.get("division")
    if not division:
        return
    console.print("\n[bold]division[/bold]")
    for label, text in _division_facts(division):
        print_field(console, label, text, width=11)
    for number, step in enumerate(filter(_is_telling_step, division.get("steps", ())), 1):
        name = _STEPS.get(step["step"]) or _words(step["step"])
        print_field(console, f"{number}. {name}", _step(step), width=len(str(number)) + 13)
    if overflow := division.get("overflow"):
        print_wrapped(console, "  ", f"unschedulable replicas kept: {_amounts(overflow)}")


_STEPS = {"beyondRoom": "no room"}
"""Steps of a division in other words: what is given out where nothing fits, to wait there."""


def _is_telling_step(step: Mapping[str, Any]) -> bool:
    """Say whether a step gave anything out: without any `minReplicas` the first one does not."""
    return step["step"] != "minimums" or bool(step["replicas"])


def _words(name: str) -> str:
    """Return `untilOthersRun` as it is said: until others run."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _division_facts(division: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if weights := division.get("weights"):
        yield "weights", f"{_amounts(weights['values'])}  ({weights['by']})"
    if room := division.get("room"):
        yield "room", f"{_amounts(room['replicas'])}  (more replicas that fit on the clusters' nodes)"
        if room.get("promised"):
            yield "promised", f"{_amounts(room['promised'])}  (of it, to decisions of the last seconds)"
    if estimated := division.get("estimated"):
        yield "can run", f"{_amounts(estimated)}  (as many as the member could schedule, or that fit)"
    if waiting := division.get("waiting"):
        yield "waiting", f"{_amounts(waiting)}  (no node fits them now)"


def _step(step: Mapping[str, Any]) -> str:
    parts = []
    for key, value in step.items():
        if key == "step":
            continue
        text = _amounts(value) if isinstance(value, dict) else ", ".join(value) if isinstance(value, list) else value
        parts.append(f"{_words(key)} {text}")
    return "; ".join(parts)


def _amounts(values: Mapping[str, Any]) -> str:
    parts = [f"{name} {amount}" for name, amount in values.items()]
    if len(parts) > _AMOUNTS_MAX:
        parts[_AMOUNTS_MAX:] = [f"and {len(parts) - _AMOUNTS_MAX} more"]
    return ", ".join(parts) or "none"
