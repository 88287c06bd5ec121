"""Project: namespaces, clusters, quota and members of one team under one name.

Reference: docs/reference/projects.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import PROJECTS
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model, NonNegative, PolicyMeta
from federation.api.v1alpha1.common import Condition, LabelSelector
from federation.api.v1alpha1.federatedresourcequota import Limits

_NAMESPACES_MAX = 100
_CLUSTERS_MAX = 1000
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_Set = {"x-kubernetes-list-type": "set"}
NamespaceName = Annotated[str, Field(min_length=1, max_length=63, pattern=_LABEL)]
ClusterName = Annotated[str, Field(min_length=1, max_length=253)]


class ProjectClusters(Model):
    """The clusters of the project: the named ones, and those with the labels. Without both it has none."""

    names: Annotated[list[ClusterName] | None, Field(max_length=_CLUSTERS_MAX, json_schema_extra=_Set)] = None
    """Names of clusters."""
    selector: LabelSelector | None = None
    """Labels of clusters, also of those that join later; absent selects none, an empty one all."""


class ProjectRole(StrEnum):
    """The roles of Kubernetes: view reads, edit writes workloads and policies, admin gives roles in namespaces, too."""

    ADMIN = "admin"
    EDIT = "edit"
    VIEW = "view"


class SubjectKind(StrEnum):
    """The kinds of subjects of a RoleBinding."""

    GROUP = "Group"
    SERVICE_ACCOUNT = "ServiceAccount"
    USER = "User"


class ProjectSubject(Model):
    """A user, a group or a service account."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.__namespace__) == (self.kind == 'ServiceAccount')",
                    "message": "give the namespace of a ServiceAccount, and none for a User or a Group",
                }
            ]
        }
    )

    kind: SubjectKind
    """Its kind."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""
    namespace: NamespaceName | None = None
    """The namespace of a service account."""


class ProjectMembers(Model):
    """The subjects that have one role in the namespaces of the project."""

    role: ProjectRole
    """Their role."""
    subjects: Annotated[list[ProjectSubject], Field(min_length=1, max_length=100)]
    """The subjects."""


class ProjectQuota(Model):
    """The limits of the project, with the resources of a FederatedResourceQuota: prices and emissions per hour too."""

    per_namespace: Limits | None = None
    """The most that the workloads of each namespace may request in all clusters together, by resource."""


class Deletion(StrEnum):
    """Keep leaves the namespaces with all that is in them; Delete deletes them with the Project."""

    DELETE = "Delete"
    KEEP = "Keep"


class ProjectSpec(Model):
    """The parts of the project."""

    clusters: ProjectClusters
    """Its clusters: for its namespaces there are no others."""
    members: Annotated[
        list[ProjectMembers] | None,
        Field(
            max_length=3,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["role"]},
        ),
    ] = None
    """The members by role. They also read the FederatedClusters of the project, and the project."""
    namespaces: Annotated[
        list[NamespaceName],
        Field(
            min_length=1,
            max_length=_NAMESPACES_MAX,
            json_schema_extra={
                **_Set,
                "x-kubernetes-validations": [
                    {
                        "rule": "self.all(name, !name.startsWith('kube-'))",
                        "message": "a namespace of the system cannot be a project's; choose another name",
                    }
                ],
            },
        ),
    ]
    """Its namespaces by name; a missing one is created. A namespace belongs to one project at most."""
    namespace_deletion: Deletion = Deletion.KEEP
    """The fate of the namespaces when the Project is deleted."""
    quota: ProjectQuota | None = None
    """Its limits."""


class LeavingCluster(Model):
    """A cluster that left the project, and still has objects of its namespaces."""

    name: str
    """The name of the cluster."""
    objects: NonNegative
    """The number of objects that are placed there."""


class ProjectStatus(Model):
    """The project as it is."""

    clusters: list[str] | None = None
    """The names of its clusters, at most 1000."""
    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The condition Ready says whether all of the spec is in force."""
    leaving: list[LeavingCluster] | None = None
    """Clusters that left the project, and still have objects of its namespaces."""


class Project(Kind):
    """Project gives a team its namespaces, the clusters that they may use, a quota and roles."""

    DEFINITION: ClassVar[Definition] = Definition(
        PROJECTS,
        "proj",
        columns=(
            Column("Namespaces", ".spec.namespaces"),
            Column("Clusters", ".status.clusters"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            AGE,
        ),
    )

    metadata: PolicyMeta | None = None
    spec: ProjectSpec
    status: ProjectStatus | None = None
