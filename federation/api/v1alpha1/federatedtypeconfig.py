"""FederatedTypeConfig: how objects of one kind are federated (docs/reference/kinds.md)."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model

_STATUS_PATH = r"^status(\.[A-Za-z_][A-Za-z0-9_-]*)+$"


class SourceType(Model):
    """A served kind."""

    group: str | None = None
    """The API group; empty for the core group."""
    kind: str
    """The kind."""
    plural_name: str
    """The plural name."""
    scope: str
    """Namespaced or Cluster."""
    version: str
    """The API version."""


class PathDefinition(Model):
    """Dot paths of the fields that scheduling, status and followers use."""

    available_replicas_status: str | None = None
    """The number of available replicas."""
    label_selector: str | None = None
    """The label selector of the Pods."""
    pod_template: str | None = None
    """The template of the Pods: what its spec refers to follows. Absent means spec.template, if it has containers."""
    ready_replicas_status: str | None = None
    """The number of ready replicas."""
    replicas_spec: str | None = None
    """The desired number of replicas."""
    replicas_status: str | None = None
    """The actual number of replicas."""


class StatusRule(Model):
    """How one field of the merged status is computed."""

    expression: Annotated[str, Field(min_length=1, max_length=8192)]
    """A CEL expression over `source`, the object on the host, and `members`, a list with `cluster`, `generation`,
    `stale` and `status` for every cluster of the placement. A cluster without a status has an empty one."""
    path: Annotated[str, Field(pattern=_STATUS_PATH, max_length=253)]
    """Dot path of the field, such as status.phase."""


class StatusAggregation(Model):
    """Whether and how the members' status is merged into the source object."""

    enabled: bool = True
    """Whether it is enabled."""
    rules: Annotated[list[StatusRule] | None, Field(max_length=16)] = None
    """Fields that are computed by expressions, for kinds without a merged status of their own."""

    model_config = ConfigDict(json_schema_extra={"required": ["enabled"]})


class StatusCollection(Model):
    """Whether fields of the member objects are collected, and which."""

    enabled: bool
    """Whether it is enabled."""
    fields: list[str] | None = None
    """Dot paths of the fields to collect."""


class AutoMigrationSwitch(Model):
    """Whether replicas that a cluster cannot schedule may move to other clusters."""

    enabled: bool
    """Whether it is enabled; policies decide for which objects."""


class HealthRule(Model):
    """Whether an object is healthy in one cluster, for kinds without replicas that are counted. An extension of this
    project.
    """

    expression: Annotated[str, Field(min_length=1, max_length=8192)]
    """A CEL expression over `object`, the member object, that is true when it is healthy. It gets `apiVersion`, `kind`,
    `metadata` (name, namespace, labels, annotations, generation), `spec` and `status`."""


class FederatedTypeConfigSpec(Model):
    """How objects of one kind are federated."""

    auto_migration: AutoMigrationSwitch | None = None
    """Whether replicas that a cluster cannot schedule may move to other clusters."""
    controllers: list[list[str]] | None = None
    """The controllers that process an object before it is dispatched: stages in order, each a set. Absent means the
    scheduler, then overrides; with an empty list nothing places its objects."""
    health: HealthRule | None = None
    """Whether an object is healthy in one cluster, for the failover of applications. An extension of this project."""
    path_definition: PathDefinition | None = None
    """Dot paths of the fields that scheduling and status use."""
    source_type: SourceType
    """The kind of the source objects."""
    status_aggregation: StatusAggregation = StatusAggregation()
    """Whether and how the members' status is merged into the source object."""
    status_collection: StatusCollection | None = None
    """Whether fields of the member objects are collected, and which."""


class FederatedTypeConfigStatus(Model):
    """Reserved."""


class FederatedTypeConfig(Kind):
    """FederatedTypeConfig makes a kind of objects federated."""

    DEFINITION: ClassVar[Definition] = Definition(
        FEDERATED_TYPE_CONFIGS, "ftc", columns=(Column("Kind", ".spec.sourceType.kind"), AGE)
    )

    spec: FederatedTypeConfigSpec
    status: FederatedTypeConfigStatus | None = None
