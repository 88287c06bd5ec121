"""The spread of a sharded service: `/federation/v1/topology`, for `fedctl topology`.

The control plane reads nodes, pods and StatefulSets of the members from its caches, plans and checks as the controller
does, and writes nothing. Permission to `get` the TopologySpreadPlan is enough: its status has the same facts.
"""

from collections import Counter
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.errors import NotFound, ServiceUnavailable
from federation.apimachinery.resources import STATEFUL_SETS
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.features.topologyspreadplan.observer import SpreadObserver, in_slices
from federation.features.topologyspreadplan.rules import report
from federation.features.topologyspreadplan.rules.evaluation import check_observed, plan_observed
from federation.features.topologyspreadplan.rules.observation import Observation
from federation.runtime.host import Host
from federation.web.requests import json_response

PATH = "/federation/v1/topology"
_Name = Annotated[str, Query(min_length=1)]


class TopologyView:
    """Plans and checks from the caches of the controllers."""

    paths = frozenset((PATH,))

    def __init__(self, host: Host) -> None:
        self._plans = host.informers.for_resource(TOPOLOGY_SPREAD_PLANS)
        self._stateful_sets = host.informers.for_resource(STATEFUL_SETS)
        self._observer = SpreadObserver(host.members)

    def add_routes(self, web: FastAPI) -> None:
        """Serve evaluations."""

        @web.get(PATH)
        async def topology(request: Request, namespace: _Name, name: _Name) -> Response:
            """Return the plan of a sharded service, its pods by node, and its violations."""
            kind = TOPOLOGY_SPREAD_PLANS
            read = Attributes("get", kind.group, kind.version, kind.plural, namespace=namespace, name=name)
            await request.scope[AUTHORIZE]([read], is_path_enough=False)
            return json_response(200, await self.evaluate(namespace, name))

    async def evaluate(self, namespace: str, name: str) -> dict[str, Any]:
        """Return plan, nodes and violations of a TopologySpreadPlan; NotFound, ServiceUnavailable without caches."""
        if not (self._plans.has_synced and self._stateful_sets.has_synced):
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        plan_object = self._plans.get(namespace, name)
        if plan_object is None:
            raise NotFound(f'{TOPOLOGY_SPREAD_PLANS.group_resource} "{name}" not found')
        if cluster := self._observer.missing_cache(plan_object):
            raise ServiceUnavailable(f"nodes and pods of cluster {cluster} are not known yet")
        observation = self._observer.observe(plan_object, self._stateful_sets.list(namespace))
        plan = await in_slices(plan_observed(observation))
        violations = await in_slices(check_observed(observation, plan))
        return {
            "kind": "TopologyEvaluation",
            "name": name,
            "namespace": namespace,
            "plan": report.plan_document(plan, [shard.name for shard in observation.shards]),
            "nodes": _nodes(observation),
            "violations": [report.violation_to_json(violation) for violation in violations],
        }


def _nodes(observation: Observation) -> list[dict[str, Any]]:
    """Return the nodes of the allowed zones with their pods of the service."""
    allowed = [zone.name for zone in observation.service.zones]
    counts = Counter((pod.cluster, pod.node) for pod in observation.distribution.pods)
    found = [
        {"cluster": node.cluster, "name": node.name, "zone": node.zone, "pods": counts[node.cluster, node.name]}
        for node in observation.distribution.nodes
        if node.zone in allowed
    ]
    return sorted(found, key=lambda node: (allowed.index(node["zone"]), node["cluster"], node["name"]))
