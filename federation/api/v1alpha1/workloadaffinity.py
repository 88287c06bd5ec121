"""Rules of propagation policies about other workloads: which run in the same domains of clusters, and which do not.

A ClusterPropagationPolicy may name namespaces; a PropagationPolicy, which a tenant may write, has no field for that.

Reference: docs/scheduling.md#workloads-together-and-apart.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from federation.api.v1alpha1.base import LABEL_KEY, Model
from federation.api.v1alpha1.common import LabelSelector

_RELATION = ConfigDict(
    json_schema_extra={
        "x-kubernetes-validations": [
            {
                "rule": "has(self.labelSelector) || has(self.matchLabelKeys)",
                "message": "names no workloads; give labelSelector, matchLabelKeys or both",
            }
        ]
    }
)


class WorkloadTerm(Model):
    """Other workloads of the object's namespace, and the domains that are shared with them or kept free of them. An
    extension of this project.
    """

    model_config = _RELATION

    label_selector: LabelSelector | None = None
    """The labels of the workloads."""
    match_label_keys: Annotated[
        list[Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]] | None, Field(min_length=1, max_length=8)
    ] = None
    """Label keys whose values the workloads share with the object. An object without one of the labels is not
    concerned."""
    topology_key: Annotated[str | None, Field(max_length=317, pattern=LABEL_KEY)] = None
    """The cluster label whose values are the domains, for example a region or a provider. Absent means that each
    cluster is a domain."""


_Weight = Annotated[int, Field(ge=1, le=100, json_schema_extra={"format": "int32"})]
_TERMS_MAX = 8


class WeightedWorkloadTerm(WorkloadTerm):
    """A preference about other workloads. An extension of this project."""

    weight: _Weight
    """How much each workload counts in a domain."""


class WorkloadAffinity(Model):
    """Other workloads that the object is together with, or apart from. An extension of this project."""

    preferred: Annotated[list[WeightedWorkloadTerm] | None, Field(max_length=_TERMS_MAX)] = None
    """Preferences; they move nothing that runs."""
    required: Annotated[list[WorkloadTerm] | None, Field(max_length=_TERMS_MAX)] = None
    """Terms that must all hold."""


_Namespaces = Annotated[list[Annotated[str, Field(max_length=63)]] | None, Field(min_length=1, max_length=64)]


class ClusterWorkloadTerm(WorkloadTerm):
    """Other workloads, and the domains that are shared with them or kept free of them. An extension of this project."""

    namespaces: _Namespaces = None
    """The namespaces of the workloads; "*" stands for all. Absent means the object's own."""


class ClusterWeightedWorkloadTerm(ClusterWorkloadTerm):
    """A preference about other workloads. An extension of this project."""

    weight: _Weight
    """How much each workload counts in a domain."""


class ClusterWorkloadAffinity(Model):
    """Other workloads that the object is together with, or apart from. An extension of this project."""

    preferred: Annotated[list[ClusterWeightedWorkloadTerm] | None, Field(max_length=_TERMS_MAX)] = None
    """Preferences; they move nothing that runs."""
    required: Annotated[list[ClusterWorkloadTerm] | None, Field(max_length=_TERMS_MAX)] = None
    """Terms that must all hold."""
