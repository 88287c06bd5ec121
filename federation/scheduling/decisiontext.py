"""One scheduling decision in words, for `fedctl why`, `fedctl plan --explain` and the web UI. Pure.

It reads parsed explanations (`explanations.py`) and returns labels with texts; the reader lays them out. Names of
triggers are spelled out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery.amounts import to_count
from federation.scheduling.explanations import ClusterRow
from federation.scheduling.triggerwords import describe_triggers

Fact = tuple[str, str]
"""A label and a text."""
_AMOUNTS_MAX = 50
"""Amounts in one text; further ones are counted."""
_COMMON_SCORES_MIN = 2
"""With at least this many scored clusters, scores that are the same in all of them are told once."""
_STEPS = {"beyondRoom": "no room"}
"""Names of division steps. `beyondRoom` places replicas that fit nowhere; their pods stay Pending."""


def has_data(row: ClusterRow) -> bool:
    """Return True if the explanation has data about the cluster; after an early failure most clusters have none."""
    return row.is_selected or row.was_selected or row.total is not None or bool(row.rejected_by or row.remarks)


def input_facts(explanation: Mapping[str, Any]) -> list[Fact]:
    """Return the inputs of a decision."""
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
    if pods := explanation.get("pods"):
        facts.append(("pods", _pods(pods, is_gang=bool(explanation.get("isGang")))))
    if because := explanation.get("because"):
        facts.append(("changed", describe_triggers(because)))
    facts += [("change", f"{each['name']}, of {each['of']}") for each in explanation.get("changes") or ()]
    facts += [(measure, _cost(measure, cost)) for measure, cost in (explanation.get("costs") or {}).items()]
    for cluster, entry in (explanation.get("givesWay") or {}).items():
        facts.append(("gave way", f"in {cluster}: {to_count(entry['count'], 'replica')} to {entry['to']}"))
    for cluster, reason in (explanation.get("stays") or {}).items():
        facts.append(("stays", f"in {cluster}: {reason}"))
    for annotation, reason in (explanation.get("ignoredAnnotations") or {}).items():
        facts.append(("ignored", f"annotation {annotation}: {reason}"))
    return facts


def _pods(pods: Sequence[Mapping[str, Any]], *, is_gang: bool) -> str:
    """Return the pods of an object by component, and whether they start together."""
    parts = [f"{each['name']} {each['count']}" for each in pods[:_AMOUNTS_MAX]]
    if len(pods) > _AMOUNTS_MAX:
        parts.append(f"and {len(pods) - _AMOUNTS_MAX} other components")
    return ", ".join(parts) + ("; they start together in one cluster or not at all" if is_gang else "")


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
    version = f", {policy['version']}" if policy.get("version") else ""
    if policy.get("namespace"):
        return f"PropagationPolicy {policy['namespace']}/{policy['name']}{version}"
    return f"ClusterPropagationPolicy {policy['name']}{version}"


def common_scores(listed: list[ClusterRow]) -> dict[str, int]:
    """Return the scores, by plugin, that are the same for all of several clusters."""
    scored = [{plugin: score for plugin, (_, score) in row.scores.items()} for row in listed if row.scores]
    if len(scored) < _COMMON_SCORES_MIN:
        return {}
    return {plugin: score for plugin, score in scored[0].items() if all(one.get(plugin) == score for one in scored)}


def weights_of(explanation: Mapping[str, Any]) -> dict[str, int]:
    """Return the weights of the score plugins."""
    return {part["plugin"]: part["weight"] for part in (explanation.get("scores") or {}).get("plugins") or ()}


def replicas_text(count: int | None, *, is_present: bool) -> str:
    """Return the replicas of a cluster: a number, "all" for as many as in the template, "-" if it is not placed."""
    if not is_present:
        return "-"
    return "all" if count is None else str(count)


def reason_text(row: ClusterRow, verdict: str, *, is_kept: bool) -> str:
    """Return the cluster's verdict with the remarks of plugins; `is_kept`: it stays, without a successful decision."""
    remarks = (f"{plugin}: {'; '.join(text)}" for plugin, text in row.remarks.items())
    return "; ".join(filter(None, (verdict, *remarks, "unchanged" if is_kept else "")))


def verdict(row: ClusterRow, common: Mapping[str, int], weights: Mapping[str, int], *, is_over: bool) -> str:
    """Return the cluster's result; `is_over`: the decision completed, so clusters are selected or not."""
    if row.rejected_by:
        return f"rejected by {row.rejected_by}: {'; '.join(row.reasons)}"
    own = {plugin: score for plugin, (_, score) in row.scores.items() if plugin not in common}
    scores = ", ".join(score_text(plugin, score, weights) for plugin, score in own.items())
    if row.total is None and not row.is_selected:
        return ""
    text = "available" if not is_over else "selected" if row.is_selected else "available, not selected"
    if row.group_unused and is_over:
        text = f"available; {row.group_unused}"
    elif row.group:
        text += f", in group {row.group}"
    return f"{text} ({scores})" if scores else text


def score_text(plugin: str, normalised: int, weights: Mapping[str, int]) -> str:
    """Return the score that a plugin gave, with the plugin's weight unless that is 1."""
    weight = weights.get(plugin, 1)
    return f"{plugin} {normalised}" if weight == 1 else f"{plugin} {weight} * {normalised}"


def amounts_text(values: Mapping[str, Any]) -> str:
    """Return amounts by name: `east 3, west 1`."""
    parts = [f"{name} {amount}" for name, amount in values.items()]
    if len(parts) > _AMOUNTS_MAX:
        parts[_AMOUNTS_MAX:] = [f"and {len(parts) - _AMOUNTS_MAX} more"]
    return ", ".join(parts) or "none"


def division_facts(division: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield what the division of replicas started from."""
    if groups := division.get("groups"):
        yield "groups", ", ".join(f"{each['name']} {each['placed']} of {each['asked']}" for each in groups)
    if weights := division.get("weights"):
        yield "weights", f"{amounts_text(weights['values'])}  ({weights['by']})"
    if room := division.get("room"):
        yield "room", f"{amounts_text(room['replicas'])}  (additional replicas that fit on the clusters' nodes)"
        if room.get("promised"):
            yield "assumed", f"{amounts_text(room['promised'])}  (of it used by decisions of the last seconds)"
    if floor := division.get("floor"):
        yield "on demand", f"{floor['onDemand']} of at least {floor['wanted']} wanted"
    if estimated := division.get("estimated"):
        yield "can run", f"{amounts_text(estimated)}  (scheduled by the member, or fitting on its nodes)"
    if waiting := division.get("waiting"):
        yield "waiting", f"{amounts_text(waiting)}  (fit on no node now)"


def division_steps(division: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the steps of the division that placed replicas."""
    for step in filter(_has_replicas, division.get("steps", ())):
        yield _STEPS.get(step["step"]) or _words(step["step"]), _step(step)


def subset_facts(subsets: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the quotas of a WorkloadSpread by subset and cluster, and the limits of clusters."""
    caps, quotas = subsets["caps"], subsets["quotas"]
    for name in dict.fromkeys((*caps, *quotas)):
        limit = f" (at most {caps[name]})" if name in caps else ""
        yield f"{name}: ", f"{amounts_text(quotas.get(name) or {})}{limit}"
    for cluster, own in (subsets.get("running") or {}).items():
        for name, count in own.items():
            yield "", f"{cluster} has no nodes for more than {count} of {name}"


def spread_facts(explanation: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield topology key, result and notes of each topology spread constraint."""
    for entry in explanation.get("topology") or ():
        few = f", minDomains {entry['minDomains']}" if "minDomains" in entry else ""
        text = (
            f"{amounts_text(entry['domains'])}; skew {entry['skew']}"
            f" (maxSkew {entry['maxSkew']}{few}, {entry['whenUnsatisfiable']})"
        )
        notes = []
        if without := entry.get("withoutLabel"):
            notes.append(f"{without} in clusters without this label")
        if closed := entry.get("notCounted"):
            notes.append(f"not counted, because unready or tainted: {', '.join(closed)}")
        if excluded := entry.get("notAllowed"):
            notes.append(f"not counted, because policy or user exclude them: {', '.join(excluded)}")
        yield entry["topologyKey"], text, tuple(notes)


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


def _step(step: Mapping[str, Any]) -> str:
    parts = []
    for key, value in step.items():
        if key == "step":
            continue
        text = (
            amounts_text(value) if isinstance(value, dict) else ", ".join(value) if isinstance(value, list) else value
        )
        parts.append(f"{_words(key)} {text}")
    return "; ".join(parts)
