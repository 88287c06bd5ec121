"""Print one scheduling decision: its inputs, scores or rejection of every cluster, and the division of replicas.

`fedctl why` and `fedctl plan --explain` use it for the explanations of `scheduling/explain.py`. Names of triggers are
spelled out; `-o json` shows them as stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.cli.terminal.printing import make_table, print_field, print_table, print_wrapped, to_count
from federation.scheduling.explain import ClusterRow, in_force, is_in_force, rows
from federation.scheduling.triggers import describe_deferral, describe_triggers

_SAME_REJECTIONS_MAX = 10
"""Clusters to list per rejection reason; further ones are counted."""
_AMOUNTS_MAX = 50
"""Amounts to print on one line; `-o json` has all of them."""
_COMMON_SCORES_MIN = 2
"""With at least this many scored clusters, scores that are the same in all of them are printed once."""


def print_title(console: Console, target: str, namespace: str, outcome: str) -> None:
    """Print the first line: the object and the outcome of its decision."""
    where = f" in {namespace}" if namespace else ""
    console.print(f"[bold]{escape(target)}[/bold]{where}: [bold]{outcome}[/bold]")


def print_reason(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason of the decision; triggers of a deferred one are spelled out."""
    if reason := str(explanation.get("reason") or ""):
        print_field(console, "reason", describe_deferral(reason))


def print_inputs(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason and the inputs of a decision."""
    print_reason(console, explanation)
    for label, value in _input_lines(explanation):
        print_field(console, label, value)


def print_scores(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the table of clusters, the topology spread and the division of replicas."""
    listed = [row for row in rows(explanation) if _has_data(row)]
    if listed:
        console.print()
        common = _common_scores(listed)
        print_table(console, _table(listed, common, explanation))
        if common:
            text = ", ".join(_score(plugin, score, _weights(explanation)) for plugin, score in common.items())
            print_wrapped(console, "same for all: ", text)
    _print_spread(console, explanation)
    _print_division(console, explanation)


def _has_data(row: ClusterRow) -> bool:
    """Return True if the explanation has data about the cluster; after an early failure most clusters have none."""
    return row.is_selected or row.was_selected or row.total is not None or bool(row.rejected_by or row.remarks)


def _input_lines(explanation: Mapping[str, Any]) -> list[tuple[str, str]]:
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
    facts += [(measure, _cost(measure, cost)) for measure, cost in (explanation.get("costs") or {}).items()]
    for cluster, entry in (explanation.get("givesWay") or {}).items():
        facts.append(("gives way", f"in {cluster}: {to_count(entry['count'], 'replica')} to {entry['to']}"))
    for cluster, reason in (explanation.get("stays") or {}).items():
        facts.append(("stays", f"in {cluster}: {reason}"))
    for annotation, reason in (explanation.get("ignoredAnnotations") or {}).items():
        facts.append(("ignored", f"annotation {annotation}: {reason}"))
    return facts


def _cost(measure: str, cost: Mapping[str, Any]) -> str:
    """Return what a placement costs per hour, now and before; clusters of unknown cost are named."""
    text = f"{to_cost(measure, cost['after'])} per hour"
    if cost["before"] != cost["after"]:
        text += f", {to_cost(measure, cost['before'])} before"
    unknown = cost.get("unknown")
    return f"{text}; not known for {', '.join(unknown)}" if unknown else text


def to_cost(measure: str, amount: float) -> str:
    """Return an amount for people: prices have no unit, emissions are grams of CO2e."""
    return f"{amount:.4g}" if measure == "price" else f"{amount:.4g} g CO2e"


def _policy(policy: Mapping[str, str]) -> str:
    if policy.get("namespace"):
        return f"PropagationPolicy {policy['namespace']}/{policy['name']}"
    return f"ClusterPropagationPolicy {policy['name']}"


def _common_scores(listed: list[ClusterRow]) -> dict[str, int]:
    """Return the scores, by plugin, that are the same for all of several clusters."""
    scored = [{plugin: score for plugin, (_, score) in row.scores.items()} for row in listed if row.scores]
    if len(scored) < _COMMON_SCORES_MIN:
        return {}
    return {plugin: score for plugin, score in scored[0].items() if all(one.get(plugin) == score for one in scored)}


def _weights(explanation: Mapping[str, Any]) -> dict[str, int]:
    return {part["plugin"]: part["weight"] for part in (explanation.get("scores") or {}).get("plugins") or ()}


def _table(listed: list[ClusterRow], common: Mapping[str, int], explanation: Mapping[str, Any]) -> Table:
    table = make_table()
    table.add_column("CLUSTER", no_wrap=True)
    for heading in ("REPLICAS", "BEFORE", "SCORE"):
        table.add_column(heading, justify="right")
    table.add_column("WHY", overflow="fold")
    weights, placed = _weights(explanation), in_force(explanation)
    is_over = is_in_force(explanation)
    rejections: Counter[tuple[str, ...]] = Counter()
    for row in listed:
        if row.rejected_by and row.name not in placed:
            rejections[row.rejected_by, *row.reasons] += 1
            if rejections[row.rejected_by, *row.reasons] > _SAME_REJECTIONS_MAX:
                continue
        is_kept = row.name in placed and not is_over
        table.add_row(
            row.name,
            _replicas(placed.get(row.name), is_present=row.name in placed),
            _replicas(row.previous, is_present=row.was_selected),
            "-" if row.total is None else str(row.total),
            escape(_reason(row, _verdict(row, common, weights, is_over=is_over), is_kept=is_kept)),
        )
    for (plugin, *reasons), count in rejections.items():
        if count > _SAME_REJECTIONS_MAX:
            more = f"{count - _SAME_REJECTIONS_MAX} more"
            table.add_row(more, "-", "-", "-", escape(f"rejected by {plugin}: {'; '.join(reasons)}"))
    return table


def _replicas(count: int | None, *, is_present: bool) -> str:
    if not is_present:
        return "-"
    return "all" if count is None else str(count)


def _reason(row: ClusterRow, verdict: str, *, is_kept: bool) -> str:
    remarks = (f"{plugin}: {'; '.join(text)}" for plugin, text in row.remarks.items())
    return "; ".join(filter(None, (verdict, *remarks, "unchanged" if is_kept else "")))


def _verdict(row: ClusterRow, common: Mapping[str, int], weights: Mapping[str, int], *, is_over: bool) -> str:
    """Return the cluster's result; `is_over`: the decision completed, so clusters are selected or not."""
    if row.rejected_by:
        return f"rejected by {row.rejected_by}: {'; '.join(row.reasons)}"
    own = {plugin: score for plugin, (_, score) in row.scores.items() if plugin not in common}
    scores = ", ".join(_score(plugin, score, weights) for plugin, score in own.items())
    if row.total is None and not row.is_selected:
        return ""
    text = "available" if not is_over else "selected" if row.is_selected else "available, not selected"
    return f"{text} ({scores})" if scores else text


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
        if excluded := entry.get("notAllowed"):
            print_wrapped(console, "    ", f"not counted, because policy or user exclude them: {', '.join(excluded)}")
    if because := explanation.get("unplacedBecause"):
        print_wrapped(console, "  ", f"{explanation['unplaced']} unplaced because of {because}")


def _print_division(console: Console, explanation: Mapping[str, Any]) -> None:
    division = explanation.get("division")
    if not division:
        return
    console.print("\n[bold]division[/bold]")
    for label, text in _division_facts(division):
        print_field(console, label, text, width=11)
    _print_subsets(console, division.get("subsets"))
    for number, step in enumerate(filter(_has_replicas, division.get("steps", ())), 1):
        name = _STEPS.get(step["step"]) or _words(step["step"])
        print_field(console, f"{number}. {name}", _step(step), width=len(str(number)) + 13)
    if overflow := division.get("overflow"):
        print_wrapped(console, "  ", f"unschedulable replicas kept: {_amounts(overflow)}")


def _print_subsets(console: Console, subsets: Mapping[str, Any] | None) -> None:
    """Print the quotas of a WorkloadSpread: the replicas of each subset, and of each cluster by subset."""
    if not subsets:
        return
    caps, quotas = subsets["caps"], subsets["quotas"]
    print_field(console, "subsets", f"of WorkloadSpread {subsets['name']}", width=11)
    for name in dict.fromkeys((*caps, *quotas)):
        limit = f" (at most {caps[name]})" if name in caps else ""
        print_wrapped(console, f"    {name}: ", f"{_amounts(quotas.get(name) or {})}{limit}")
    for cluster, own in (subsets.get("running") or {}).items():
        for name, count in own.items():
            print_wrapped(console, "    ", f"{cluster} has no nodes for more than {count} of {name}")


_STEPS = {"beyondRoom": "no room"}
"""Printed names of division steps. `beyondRoom` places replicas that fit nowhere; their pods stay Pending."""


def _has_replicas(step: Mapping[str, Any]) -> bool:
    """Return True if the step placed replicas; the first step does not unless a cluster has `minReplicas`.

    The step `subsets` repeats the quotas, which are printed before the steps.
    """
    if step["step"] == "subsets":
        return False
    return step["step"] != "minimums" or bool(step["replicas"])


def _words(name: str) -> str:
    """Return a camel-case name as words: `untilOthersRun` as "until others run"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _division_facts(division: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if weights := division.get("weights"):
        yield "weights", f"{_amounts(weights['values'])}  ({weights['by']})"
    if room := division.get("room"):
        yield "room", f"{_amounts(room['replicas'])}  (additional replicas that fit on the clusters' nodes)"
        if room.get("promised"):
            yield "assumed", f"{_amounts(room['promised'])}  (of it used by decisions of the last seconds)"
    if floor := division.get("floor"):
        yield "on demand", f"{floor['onDemand']} of at least {floor['wanted']} wanted"
    if estimated := division.get("estimated"):
        yield "can run", f"{_amounts(estimated)}  (scheduled by the member, or fitting on its nodes)"
    if waiting := division.get("waiting"):
        yield "waiting", f"{_amounts(waiting)}  (fit on no node now)"


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
