"""`fedctl why KIND/NAME`: the last decision about an object, for every cluster selected or rejected.

It only prints what the journal holds: which plugin rejected a cluster and the reason, every plugin's score, and the
division of replicas step by step. `-o json` prints the journal's record unchanged.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS, Resource
from federation.base.clock import SystemClock, from_rfc3339
from federation.base.errors import ConfigurationError, NotFound
from federation.cli.clusters import to_age, to_console
from federation.cli.session import Session, get_json
from federation.client.http import HTTPClient
from federation.scheduling.explain import ClusterRow, rows


async def why(session: Session, target: str, namespace: str, output: str) -> None:
    """Print the last decision about `target` (KIND/NAME; a kind, plural or short name, with or without its group)."""
    kind_text, separator, name = target.partition("/")
    if not separator or not kind_text or not name or "/" in name:
        raise ConfigurationError(f"{target!r}: write KIND/NAME, for example deployment/nginx")
    async with session.client() as host:
        served = await _resolve(host, kind_text)
        query = {"kind": served["kind"], "group": served["group"], "name": name}
        if served["namespaced"]:
            query["namespace"] = namespace
        answer = await get_json(host, "/federation/v1/decisions", query)
        assert isinstance(answer, dict)
        if not answer["items"]:
            raise ConfigurationError(await _say_nothing_decided(host, served, namespace, name))
    record = answer["items"][0]
    if output == "json":
        print(orjson.dumps(record, option=orjson.OPT_INDENT_2).decode())
        return
    _print(record)


async def _say_nothing_decided(host: HTTPClient, served: Mapping[str, Any], namespace: str, name: str) -> str:
    target = f"{served['kind'].lower()}/{name}"
    where = f" in namespace {namespace}" if served["namespaced"] else ""
    resource = Resource(served["group"], served["version"], served["kind"], served["plural"], served["namespaced"])
    try:
        await host.get(resource, name, namespace if resource.namespaced else "")
    except NotFound:
        return f"{target}{where} does not exist, and no decision about it is kept"
    return (
        f"{target}{where} was never scheduled: no existing policy applies to it; name one in its label"
        f" {names.PROPAGATION_POLICY_LABEL}, or select it in a policy's spec.resourceSelectors"
    )


async def _resolve(host: HTTPClient, text: str) -> dict[str, Any]:
    """Return kind, group and scope of a federated kind, by kind, plural, singular or short name."""
    wanted, _, group_wanted = text.lower().partition(".")
    sources = [c["spec"]["sourceType"] for c in (await host.list(FEDERATED_TYPE_CONFIGS)).items]
    for group, version in sorted({(s.get("group", ""), s["version"]) for s in sources}):
        if group_wanted and group_wanted != group:
            continue
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = await get_json(host, path, {})
        assert isinstance(listed, dict)
        for served in listed["resources"]:
            known = {served["kind"].lower(), served["name"], served.get("singularName"), *served.get("shortNames", ())}
            if "/" not in served["name"] and wanted in known:
                return {**served, "group": group, "version": version, "plural": served["name"]}
    raise ConfigurationError(f"{text!r} is no federated kind; `kubectl get federatedtypeconfigs` lists those that are")


def _print(record: Mapping[str, Any]) -> None:
    console = to_console()
    explanation = record["explanation"]
    made = from_rfc3339(record["at"])
    where = f" in {record['namespace']}" if record["namespace"] else ""
    console.print(f"[bold]{record['kind'].lower()}/{record['name']}[/bold]{where}: [bold]{record['outcome']}[/bold]")
    print_facts(console, explanation)
    age = to_age(SystemClock().now(), made)
    console.print(f"  decided   {age} ago, in {record['durationMs']:.1f} ms")
    print_scores(console, explanation)


def print_facts(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print the reason of a decision and what it was made under."""
    if explanation.get("reason"):
        console.print(f"  reason    {escape(str(explanation['reason']))}")
    for label, value in _facts(explanation):
        console.print(f"  {label:<9} {escape(value)}")


def print_scores(console: Console, explanation: Mapping[str, Any]) -> None:
    """Print every cluster of a decision with scores or rejection, and the division of replicas."""
    listed = rows(explanation)
    if listed:
        console.print()
        console.print(_table(listed, explanation))
    _print_division(console, explanation)


def _facts(explanation: Mapping[str, Any]) -> list[tuple[str, str]]:
    unit = explanation.get("unit") or {}
    facts = []
    if policy := explanation.get("policy"):
        facts.append(("policy", _policy(policy)))
    if explanation.get("profile"):
        facts.append(("profile", str(explanation["profile"])))
    if unit.get("mode"):
        wanted = unit.get("desiredReplicas")
        facts.append(("mode", str(unit["mode"]) + (f", {wanted} replicas" if wanted is not None else "")))
    if because := explanation.get("because"):
        facts.append(("changed", ", ".join(map(str, because))))
    return facts


def _policy(policy: Mapping[str, str]) -> str:
    if policy.get("namespace"):
        return f"PropagationPolicy {policy['namespace']}/{policy['name']}"
    return f"ClusterPropagationPolicy {policy['name']}"


def _table(listed: list[ClusterRow], explanation: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("CLUSTER", no_wrap=True)
    for heading in ("REPLICAS", "BEFORE", "SCORE"):
        table.add_column(heading, justify="right")
    table.add_column("WHY", overflow="fold")
    mode = (explanation.get("unit") or {}).get("mode")
    for row in listed:
        table.add_row(
            row.name,
            _replicas(row.replicas, present=row.is_selected, mode=mode),
            _replicas(row.previous, present=row.was_selected, mode=mode),
            "-" if row.total is None else str(row.total),
            escape(_reason(row)),
        )
    return table


def _replicas(count: int | None, *, present: bool, mode: str | None) -> str:
    if not present:
        return "-"
    return "all" if count is None and mode == "Duplicate" else str(count if count is not None else "?")


def _reason(row: ClusterRow) -> str:
    remarks = (f"{plugin}: {'; '.join(said)}" for plugin, said in row.remarks.items())
    return "; ".join(filter(None, (_verdict(row), *remarks)))


def _verdict(row: ClusterRow) -> str:
    if row.rejected_by:
        return f"rejected by {row.rejected_by}: {'; '.join(row.reasons)}"
    scores = ", ".join(f"{plugin} {normalised}" for plugin, (_, normalised) in row.scores.items())
    if row.is_selected:
        return f"selected ({scores})" if scores else "selected"
    if row.total is None:
        return "kept as it was" if row.was_selected else ""
    return f"available, not selected ({scores})" if scores else "available, not selected"


def _print_division(console: Console, explanation: Mapping[str, Any]) -> None:
    division = explanation.get("division")
    if not division:
        return
    console.print("\n[bold]division[/bold]")
    weights = division.get("weights")
    if weights:
        console.print(f"  weights    {_amounts(weights['values'])}  ({weights['by']})")
    if room := division.get("room"):
        console.print(f"  room       {_amounts(room['replicas'])}  (more replicas that fit on the clusters' nodes)")
        if room.get("promised"):
            console.print(f"  promised   {_amounts(room['promised'])}  (of it, to decisions of the last seconds)")
    if division.get("estimated"):
        console.print(
            f"  can run    {_amounts(division['estimated'])}  (as many as the member could schedule, or that fit)"
        )
    for number, step in enumerate(division.get("steps", ()), 1):
        console.print(f"  {number}. {step['step']:<9} {escape(_step(step))}")
    if division.get("overflow"):
        console.print(f"  unschedulable replicas kept: {_amounts(division['overflow'])}")


def _step(step: Mapping[str, Any]) -> str:
    parts = []
    for key, value in step.items():
        if key == "step":
            continue
        parts.append(f"{key} {_amounts(value) if isinstance(value, dict) else value}")
    return "; ".join(parts)


def _amounts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in values.items()) or "none"
