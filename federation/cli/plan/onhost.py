"""Plans of commands that change workloads, for users who may not list what plans depend on: the host computes them.

A role in a namespace is enough. What the host shows is what `fedctl why` would show after the change.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from federation.api import names
from federation.apimachinery.listening import Patience
from federation.cli.applications.deliveryview import read_delivery
from federation.cli.plan.command import request_plan
from federation.plans.documents import Document
from federation.plans.edits import Edit, Verb
from federation.plans.inventory import PlanForbidden
from federation.plans.requestedchanges import RequestedChanges
from federation.scheduling.whatif.planresult import Plan, from_json

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

NOT_CHECKED = (
    "not checked: other parts of the application, which go along only if the annotation"
    f" {names.FOLLOWERS} lists them, and what it needs in a cluster; that takes the right to list federatedtypeconfigs,"
    " federatedobjects and federatedclusters"
)
"""What is printed for users with a role in a namespace only."""
_POLL_S = 0.3


async def plan_edits(host: "HTTPClient", edits: Sequence[Edit], namespace: str, forbidden: PlanForbidden) -> Plan:
    """Return the plan of merge patches and of manifests to apply; `forbidden` is raised if the host computes none."""
    documents = [Document(each.origin, each.body) for each in edits if each.verb is Verb.APPLY]
    patches = [each for each in edits if each.verb is Verb.MERGE]
    answer = await request_plan(host, RequestedChanges(documents, edits=patches, namespace=namespace))
    if answer is None:
        raise forbidden
    plan = from_json(answer)
    resources = {(each.resource.group_kind, each.namespace, each.name): each.resource for each in edits}
    objects = [
        replace(obj, resource=resources.get((obj.resource.group_kind, obj.namespace, obj.name), obj.resource))
        for obj in plan.objects
    ]
    return replace(plan, objects=objects)


async def wait_placed(host: "HTTPClient", plan: Plan, edits: Sequence[Edit], patience: Patience) -> int:
    """Wait until the workloads are in the clusters of the plan, and no others; return 1 if they are not in time."""
    edited = {(each.resource, each.namespace, each.name) for each in edits}
    for obj in plan.changed:
        if (obj.resource, obj.namespace, obj.name) not in edited:
            continue
        planned = {row.cluster: row.after.replicas for row in obj.rows if row.after is not None}
        while True:
            rows = (await read_delivery(host, obj.resource, obj.namespace, obj.name))["clusters"]
            placed = {row["cluster"]: row["wanted"] for row in rows if row["placed"]}
            if placed == planned:
                break
            if patience.is_over():
                found = ", ".join(f"{cluster} {count}" for cluster, count in placed.items()) or "no cluster"
                late = f"{obj.target} is not placed as planned after {patience.timeout_s:g} s, but in: {found}"
                print(f"{late}; see `fedctl why {obj.target}`")
                return 1
            await asyncio.sleep(_POLL_S)
    return 0
