"""ClusterJoinPolicy: the ClusterProfiles of other managers whose clusters join. One of our own kinds.

Reference: docs/reference/clusterprofiles.md#joining
"""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.v1alpha1.base import AGE, LABEL_KEY, Column, Definition, Kind, Model, NonNegative
from federation.api.v1alpha1.common import LabelSelector
from federation.features.clusterprofiles.names import CLUSTER_JOIN_POLICIES

_SET = {"x-kubernetes-list-type": "set"}
_Name = Annotated[str, Field(min_length=1, max_length=253)]


class JoinTaint(Model):
    """A taint that clusters join with."""

    effect: Annotated[str, Field(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")]
    """Its effect on replicas that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute."""
    key: Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY)]
    """Its key."""
    value: Annotated[str | None, Field(max_length=63)] = None
    """Its value."""


class ClusterJoinPolicySpec(Model):
    """The profiles, the providers of credentials, and what the clusters get when they join."""

    copied_labels: Annotated[list[_Name] | None, Field(max_length=64, json_schema_extra=_SET)] = None
    """The keys of labels that a cluster gets from its profile when it joins."""
    labels: Annotated[dict[str, str] | None, Field(max_length=64)] = None
    """Labels that each cluster gets when it joins; they go before those of its profile."""
    managers: Annotated[list[_Name] | None, Field(min_length=1, max_length=64, json_schema_extra=_SET)] = None
    """The managers of the profiles (spec.clusterManager.name); absent means all others."""
    namespaces: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63)]],
        Field(min_length=1, max_length=64, json_schema_extra=_SET),
    ]
    """The namespaces of the profiles. Who may write ClusterProfiles there decides which clusters join."""
    providers: Annotated[list[_Name], Field(min_length=1, max_length=32, json_schema_extra=_SET)]
    """The providers of the administrator's list that may be used; the first that a profile has counts."""
    selector: LabelSelector | None = None
    """The labels of the profiles; absent or empty selects all."""
    taints: Annotated[list[JoinTaint] | None, Field(max_length=8)] = None
    """The taints that each cluster joins with, for example until somebody has looked at it."""


class JoinProblem(Model):
    """A profile whose cluster does not join."""

    message: str
    """The reason, and the remedy."""
    profile: str
    """Namespace and name of the profile."""


class ClusterJoinPolicyStatus(Model):
    """What became of the selected profiles."""

    joined: NonNegative | None = None
    """The number of those whose cluster has joined."""
    problems: list[JoinProblem] | None = None
    """The first 50 whose cluster does not join."""
    selected: NonNegative | None = None
    """The number of selected profiles."""


class ClusterJoinPolicy(Kind):
    """ClusterJoinPolicy lets the clusters of other managers' ClusterProfiles join the federation."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLUSTER_JOIN_POLICIES,
        columns=(
            Column("Selected", ".status.selected", "integer"),
            Column("Joined", ".status.joined", "integer"),
            Column("Problem", ".status.problems[0].message"),
            AGE,
        ),
    )

    spec: ClusterJoinPolicySpec
    status: ClusterJoinPolicyStatus | None = None
