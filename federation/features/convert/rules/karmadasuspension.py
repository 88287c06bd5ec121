"""The `suspension` of Karmada's policies as our suspensions of deliveries. Pure.

Karmada suspends the objects of a policy without a reason, an owner or an end, so the converted one names the policy.
"""

from typing import Any

from federation.api import names
from federation.api.resources import CLUSTER_DELIVERY_SUSPENSIONS, DELIVERY_SUSPENSIONS
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader


def to_suspension(spec: FieldReader, title: str, metadata: Object, selectors: list[Any]) -> Object | None:
    """Return the suspension of the deliveries of a policy, None if nothing is suspended.

    `title` names the policy, `metadata` is that of the converted one, `selectors` are its resourceSelectors.
    """
    suspension = spec.child("suspension")
    if suspension.flag("scheduling"):
        suspension.note("scheduling", f"annotate the objects with {names.NO_SCHEDULING}: true")
    some = suspension.child("dispatchingOnClusters")
    clusters, is_everywhere = some.texts("clusterNames"), suspension.flag("dispatching")
    if is_everywhere and clusters:
        some.note("clusterNames", "has no effect beside dispatching: true")
    if not (is_everywhere or clusters):
        return None
    namespace = metadata.get("namespace")
    resource = DELIVERY_SUSPENSIONS if namespace else CLUSTER_DELIVERY_SUSPENSIONS
    converted: Object = {"objects": selectors} if selectors else {}
    if not is_everywhere:
        converted["clusters"] = clusters
    converted |= {"owner": title[:256], "reason": "suspended in Karmada by spec.suspension of this policy"}
    where = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": metadata["name"], **where},
        "spec": converted,
    }
