"""`fedctl why KIND/NAME`: a decision about an object, for every cluster selected or rejected.

It only prints what the journal holds: which plugin rejected a cluster and the reason, every plugin's score, and the
division of replicas step by step. The newest decision, or with `--at` the one that was in force then; `--diff` compares
it with the one before (`whydiff.py`). `-o json` and `-o yaml` print the journal's record unchanged. Of an object that
follows others it says whom (`whyfollows.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from federation.api import names
from federation.api.resources import Resource
from federation.base.clock import SystemClock, from_rfc3339, to_rfc3339_micro
from federation.base.errors import ConfigurationError, NotFound
from federation.cli.clusters import to_age, to_console
from federation.cli.moments import parse_moment
from federation.cli.plan.kinds import Kinds
from federation.cli.session import Session, get_json
from federation.cli.whydiff import print_difference
from federation.cli.whyfollows import Following, print_following, read_following
from federation.client.http import HTTPClient
from federation.scheduling.comparison import compare
from federation.scheduling.explain import ClusterRow, kept_placement, rows


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `target` is KIND/NAME (a kind, plural or short name, with or without its group)."""

    target: str
    namespace: str
    at: str = ""
    is_difference: bool = False
    output: str = "table"


async def why(session: Session, question: Question) -> None:
    """Print a decision, or what changed by it."""
    kind_text, separator, name = question.target.partition("/")
    if not separator or not kind_text or not name or "/" in name:
        raise ConfigurationError(f"{question.target!r}: write KIND/NAME, for example deployment/nginx")
    query = {"name": name, "limit": "2" if question.is_difference else "1"}
    if question.at:
        query["until"] = to_rfc3339_micro(parse_moment(question.at, SystemClock().now(), "--at"))
    async with session.client() as host:
        resource = await Kinds(host).named(kind_text)
        query |= {"kind": resource.kind, "group": resource.group}
        if resource.namespaced:
            query["namespace"] = question.namespace
        answer = await get_json(host, "/federation/v1/decisions", query)
        assert isinstance(answer, dict)
        records = answer["items"]
        following = None if question.at else await read_following(host, resource, question.namespace, name)
        if not records and following is None:
            raise ConfigurationError(await _say_nothing_decided(host, resource, question, name))
    if not records and following is not None:
        _print_follower(resource, question.namespace, name, following, question.output)
        return
    if question.is_difference and len(records) == 1:
        raise ConfigurationError(f"{resource.kind.lower()}/{name}: there is no decision before it to compare with")
    if question.output != "table":
        _dump(records, question)
    elif question.is_difference:
        print_difference(*records)
    else:
        _print(records[0], following)


def _dump(records: list[dict[str, Any]], question: Question) -> None:
    value: Any = records[0]
    if question.is_difference:
        after, before = records
        difference = compare(before["explanation"], after["explanation"]).to_json()
        value = {"before": before, "after": after, "difference": difference}
    if question.output == "json":
        print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    else:
        print(yaml.safe_dump(orjson.loads(orjson.dumps(value)), sort_keys=False, allow_unicode=True), end="")


async def _say_nothing_decided(host: HTTPClient, resource: Resource, question: Question, name: str) -> str:
    namespace = question.namespace
    target = f"{resource.kind.lower()}/{name}"
    where = f" in namespace {namespace}" if resource.namespaced else ""
    if question.at:
        return f"{target}{where}: no decision that was made until then is kept; without --at you see the newest"
    try:
        await host.get(resource, name, namespace if resource.namespaced else "")
    except NotFound:
        return f"{target}{where} does not exist, and no decision about it is kept"
    return (
        f"{target}{where} was never scheduled: no existing policy applies to it; name one in its label"
        f" {names.PROPAGATION_POLICY_LABEL}, or select it in a policy's spec.resourceSelectors"
    )


def _print_follower(resource: Resource, namespace: str, name: str, following: Following, output: str) -> None:
    """Print why an object that no policy applies to is where it is."""
    if output == "json":
        print(orjson.dumps(following.to_json(), option=orjson.OPT_INDENT_2).decode())
    elif output == "yaml":
        print(yaml.safe_dump(following.to_json(), sort_keys=False, allow_unicode=True), end="")
    else:
        console = to_console()
        console.print(f"[bold]{resource.kind.lower()}/{escape(name)}[/bold] in {namespace}: [bold]Following[/bold]")
        print_following(console, following)


def _print(record: Mapping[str, Any], following: Following | None) -> None:
    console = to_console()
    explanation = record["explanation"]
    made = from_rfc3339(record["at"])
    where = f" in {record['namespace']}" if record["namespace"] else ""
    console.print(f"[bold]{record['kind'].lower()}/{record['name']}[/bold]{where}: [bold]{record['outcome']}[/bold]")
    print_facts(console, explanation)
    if following is not None:
        print_following(console, following)
    if kept := kept_placement(explanation):
        console.print(f"  stays     {escape(kept)}")
    now = SystemClock().now()
    again = ""
    if count := record.get("repeats"):
        last = to_age(now, from_rfc3339(record["lastAt"]))
        again = f"; {count} time{'' if count == 1 else 's'} again with the same result, last {last} ago"
    console.print(f"  decided   {to_age(now, made)} ago, in {record['durationMs']:.1f} ms{again}")
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
    _print_spread(console, explanation)
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
    for annotation, reason in (explanation.get("ignoredAnnotations") or {}).items():
        facts.append(("ignored", f"annotation {annotation}: {reason}"))
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


def _print_spread(console: Console, explanation: Mapping[str, Any]) -> None:
    constraints = explanation.get("topology")
    if not constraints:
        return
    console.print("\n[bold]topology spread[/bold]")
    for entry in constraints:
        few = f", minDomains {entry['minDomains']}" if "minDomains" in entry else ""
        console.print(
            f"  {escape(entry['topologyKey'])}: {escape(_amounts(entry['domains']))}; skew {entry['skew']}"
            f" (maxSkew {entry['maxSkew']}{few}, {entry['whenUnsatisfiable']})"
        )
        if without := entry.get("withoutLabel"):
            console.print(f"    {without} in clusters without this label")
        if closed := entry.get("notCounted"):
            console.print(f"    not counted, because unready or tainted: {escape(', '.join(closed))}")
    if because := explanation.get("unplacedBecause"):
        console.print(f"  {explanation['unplaced']} without a place within {escape(because)}")


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
