"""The work of `fedctl topology`: print plans and violations of sharded services (docs/reference/topologyspreadplan.md).

A manifest is planned here, without a federation. A named plan is evaluated by the control plane from its caches.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.features.topologyspreadplan.model import TopologySpreadPlan
from federation.features.topologyspreadplan.rules import report
from federation.features.topologyspreadplan.rules.observation import service_of, shards_of
from federation.features.topologyspreadplan.rules.planner import Avoidance, Outcome, plan_service, run
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.terminal.manifests import read_manifests
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, make_table, print_field, print_table

_PATH = "/federation/v1/topology"
_STATES_MAX = 100_000
"""States of a search for a manifest: about half a minute."""
_SUFFIXES = (".yaml", ".yml", ".json")


async def plan(context: KubeconfigContext, target: str, namespace: str, output: str) -> int:
    """Print the plan of a manifest or of a named plan; return the exit code."""
    if target == "-" or target.endswith(_SUFFIXES) or Path(target).is_file():
        name, document = _plan_file(target)
    else:
        name, document = target, (await _evaluate(context, namespace, target))["plan"]
    if output != "table":
        print_document({"name": name, **document}, output)
    else:
        print_plan(name, document)
    return 0 if document["verdict"]["result"] == Outcome.FREE else 1


async def check(context: KubeconfigContext, name: str, namespace: str, output: str) -> int:
    """Print pods per node and violations of a named plan; return the exit code."""
    evaluation = await _evaluate(context, namespace, name)
    if output != "table":
        print_document(evaluation, output)
    else:
        print_evaluation(evaluation)
    return 1 if evaluation["violations"] else 0


def print_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the pods per node and the violations of an answer of `/federation/v1/topology`."""
    nodes = [(node["zone"], node["cluster"], node["name"], str(node["pods"])) for node in evaluation["nodes"]]
    _print_rows(nodes, ("ZONE", "CLUSTER", "NODE", "PODS"))
    print()
    rows = [
        (each["rule"], each["severity"], _number(each, "count"), _number(each, "limit"), each["message"])
        for each in evaluation["violations"]
    ]
    if rows:
        _print_rows(rows, ("RULE", "SEVERITY", "COUNT", "LIMIT", "VIOLATION"))
    else:
        print("no violations")


def _number(violation: Mapping[str, Any], key: str) -> str:
    return "-" if violation.get(key) is None else str(violation[key])


async def _evaluate(context: KubeconfigContext, namespace: str, name: str) -> dict[str, Any]:
    async with context.client() as host:
        # A missing plan is reported by name; the path itself is missing only on servers of other products.
        await host.get(TOPOLOGY_SPREAD_PLANS, name, namespace)
        answer = await get_json(host, _PATH, {"namespace": namespace, "name": name})
    assert isinstance(answer, dict)
    return answer


def _plan_file(target: str) -> tuple[str, dict[str, Any]]:
    """Return name and plan of the one TopologySpreadPlan in a file; ConfigurationError names what is wrong."""
    manifests: list[Object] = [document.manifest for document in read_manifests([target])]
    plans = [each for each in manifests if each.get("kind") == TOPOLOGY_SPREAD_PLANS.kind]
    if len(plans) != 1:
        raise ConfigurationError(f"{target}: expected one TopologySpreadPlan, found {len(plans)}")
    try:
        TopologySpreadPlan.model_validate(plans[0])
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{target}: {field}: {first['msg']}") from None
    spec = plans[0]["spec"]
    for zone in spec["zones"]:
        if zone.get("nodes") is None:
            raise ConfigurationError(f"{target}: zone {zone['name']}: give the number of its nodes in `nodes`")
    shards = shards_of(spec, [each for each in manifests if each.get("kind") == STATEFUL_SETS.kind])
    service = service_of(spec, shards, None)
    if not service.shards:
        raise ConfigurationError(f"{target}: give the number of shards in spec.shards, or add their StatefulSets")
    found = run(plan_service(service, states_max=_STATES_MAX))
    name = str((plans[0].get("metadata") or {}).get("name", target))
    return name, report.plan_document(found, [shard.name for shard in shards])


def print_plan(name: str, document: Mapping[str, Any]) -> None:
    """Print a plan: facts, constraints of each StatefulSet, shares of clusters."""
    console, verdict = make_console(), document["verdict"]
    console.print(f"{name}: {document['shards']} shards, {document['pods']} pods", markup=False, soft_wrap=True)
    facts = [("limits", _amounts(document["limits"])), ("verdict", f"{verdict['result']}: {verdict['message']}")]
    is_avoided = verdict["avoidance"] != Avoidance.NONE
    if "states" in verdict:
        found = "; a deadlock is reachable with the computed maxSkew in all zones" if is_avoided else ""
        facts.append(("search", f"{verdict['states']} states{found}"))
    if "worstCase" in verdict and not is_avoided:
        facts.append(("worst case", f"{_amounts(verdict['worstCase'])}, in any order of scheduling"))
    if "relaxation" in document:
        facts.append(("relaxation", f"maxSkew {_amounts(document['relaxation'])} has no deadlock"))
    if "assignment" in document:
        zones = ("+".join(own) for own in document["assignment"])
        facts.append(("assignment", f"{', '.join(zones)} has no deadlock"))
    facts += [("note", finding["message"]) for finding in document["findings"]]
    for label, text in facts:
        print_field(console, label, text, width=12)
    if constraints := document.get("constraints"):
        print()
        rows = [
            (
                each["statefulSet"],
                str(each["nodeMaxSkew"]),
                str(each.get("zoneMaxSkew", "-")),
                ", ".join(each["zones"]),
            )
            for each in constraints
        ]
        _print_rows(rows, ("STATEFULSET", "NODE MAXSKEW", "ZONE MAXSKEW", "ZONES"))
    if clusters := document.get("clusters"):
        print()
        shares = [
            (
                each["cluster"],
                str(each["pods"]),
                ", ".join(each["zones"]),
                ", ".join(f"{shard} {count}" for shard, count in each["replicas"].items()),
            )
            for each in clusters
        ]
        _print_rows(shares, ("CLUSTER", "PODS", "ZONES", "REPLICAS"))


def _amounts(values: Mapping[str, int]) -> str:
    """Return `node 1, zone 2`."""
    return ", ".join(f"{name} {count}" for name, count in values.items())


def _print_rows(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Print a table; only the last column wraps."""
    table = make_table()
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*row)
    print_table(make_console(), table)
