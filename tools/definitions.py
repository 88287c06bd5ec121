"""All our kinds, and the CustomResourceDefinition of each.

Used by the generators of `federation/api/crds.json` and of the JSON schemas, and by tests. At run time the
generated file is read instead (`api/crds.py`), because importing the models costs more than the control plane's start.
"""

from itertools import chain
from typing import Any

from federation.api import names
from federation.api.kruise.cloneset import CloneSet
from federation.api.kruise.statefulset import StatefulSet
from federation.api.kubefedkinds import SCHEDULING_GROUP, TYPES_GROUP
from federation.api.resources import CORE_GROUP, KRUISE_GROUP
from federation.api.v1alpha1.base import Column, Kind
from federation.api.v1alpha1.changefreeze import ChangeFreeze
from federation.api.v1alpha1.clusterdisruptionbudget import ClusterDisruptionBudget
from federation.api.v1alpha1.collectedstatus import ClusterCollectedStatus, CollectedStatus
from federation.api.v1alpha1.deliverysuspension import ClusterDeliverySuspension, DeliverySuspension
from federation.api.v1alpha1.federatedcluster import FederatedCluster
from federation.api.v1alpha1.federatedobject import ClusterFederatedObject, FederatedObject
from federation.api.v1alpha1.federatedresourcequota import FederatedResourceQuota
from federation.api.v1alpha1.federatedtypeconfig import FederatedTypeConfig
from federation.api.v1alpha1.leftover import Leftover
from federation.api.v1alpha1.overridepolicy import ClusterOverridePolicy, OverridePolicy
from federation.api.v1alpha1.placementhold import PlacementHold
from federation.api.v1alpha1.propagatedversion import ClusterPropagatedVersion, PropagatedVersion
from federation.api.v1alpha1.propagationpolicy import ClusterPropagationPolicy, PropagationPolicy
from federation.api.v1alpha1.schedulerpluginwebhookconfiguration import SchedulerPluginWebhookConfiguration
from federation.api.v1alpha1.schedulingprofile import SchedulingProfile
from federation.features.catalogue import FEATURES
from tools.structuralschemas import to_structural

KINDS: tuple[type[Kind], ...] = (
    CloneSet,
    ClusterCollectedStatus,
    ChangeFreeze,
    ClusterDeliverySuspension,
    ClusterDisruptionBudget,
    ClusterFederatedObject,
    ClusterOverridePolicy,
    ClusterPropagatedVersion,
    ClusterPropagationPolicy,
    CollectedStatus,
    DeliverySuspension,
    FederatedCluster,
    FederatedObject,
    FederatedResourceQuota,
    FederatedTypeConfig,
    Leftover,
    PlacementHold,
    OverridePolicy,
    PropagatedVersion,
    PropagationPolicy,
    SchedulerPluginWebhookConfiguration,
    SchedulingProfile,
    StatefulSet,
    *chain.from_iterable(feature.kinds() for feature in FEATURES),
)

_CATEGORY = "federation"
"""`kubectl get federation` lists the objects of our kinds; those of other groups belong to other projects."""
_SHARED_GROUPS = (KRUISE_GROUP, SCHEDULING_GROUP, TYPES_GROUP)
"""Other projects define these kinds as well: only a definition with our label is replaced (api/crds.py)."""
_UNLISTED = (ClusterCollectedStatus, ClusterPropagatedVersion, CollectedStatus, PropagatedVersion)
"""Bookkeeping of controllers, of no use in that list."""


def to_crd(kind: type[Kind]) -> dict[str, Any]:
    """Return the CustomResourceDefinition (apiextensions.k8s.io/v1) of a kind."""
    definition = kind.DEFINITION
    resource = definition.resource
    spec_names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if resource.group == CORE_GROUP and kind not in _UNLISTED:
        spec_names["categories"] = [_CATEGORY]
    if definition.short_name:
        spec_names["shortNames"] = [definition.short_name]
    schema = to_structural(kind)
    # Kubernetes describes the metadata of every kind itself and refuses a definition that does.
    schema["properties"]["metadata"].pop("description", None)
    version: dict[str, Any] = {"schema": {"openAPIV3Schema": schema}}
    if definition.has_status:
        version["subresources"] = {"status": {}}
    if definition.is_scalable:
        version["subresources"]["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector",
        }
    if definition.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in definition.columns]
    metadata: dict[str, Any] = {"name": resource.group_resource}
    if resource.group in _SHARED_GROUPS:
        metadata["labels"] = {names.SHIPPED_DEFINITION: "true"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": resource.group,
            "names": spec_names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {"name": name, "served": True, "storage": name == resource.version, **version}
                for name in (resource.version, *definition.also_served)
            ],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    priority = {"priority": 1} if column.is_wide else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.json_path, **priority}


def build_crds() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of all our kinds, by name."""
    return sorted(map(to_crd, KINDS), key=lambda crd: str(crd["metadata"]["name"]))
