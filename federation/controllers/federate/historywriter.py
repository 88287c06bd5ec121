"""Write the history of pod templates that `kubectl rollout history` and `undo` read on the host.

It is written before the federated object gets the new template: until then the federated object has the earlier one,
so a crash between the two writes loses nothing. Nothing is written for a workload whose template never changed, for
one that is in no cluster, and where the host's own controllers keep the history.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.planning.federatedobject.federatedtemplate import divide
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.templatehistory import history_resource, plan_history


async def write_history(client: Client, type_: FederatedType, source: Object, federated: Object) -> None:
    """Record the earlier and the new pod template of a source, which is about to replace that of `federated`."""
    resource = history_resource(type_.resource)
    if resource is None or not effective_placement(federated):
        return
    before, after = _pod_template(federated["spec"].get("template") or {}), _pod_template(divide(source).template)
    if not before or before == after:
        return
    namespace = source["metadata"]["namespace"]
    labels = ((source.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    stored = (await client.list(resource, namespace, label_selector=selector)).items
    plan = plan_history(type_.resource, source, before, after, stored)
    for entry in plan.creates:
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, entry, field_manager=names.FIELD_MANAGER)
    for name, patch in plan.patches.items():
        with contextlib.suppress(NotFound):
            await client.patch(resource, name, patch, namespace=namespace, field_manager=names.FIELD_MANAGER)
    for name in plan.deletes:
        with contextlib.suppress(NotFound):
            await client.delete(resource, name, namespace)


def _pod_template(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    found = (workload.get("spec") or {}).get("template")
    return found if isinstance(found, Mapping) else {}
