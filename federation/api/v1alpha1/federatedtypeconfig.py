"""FederatedTypeConfig: how objects of one kind are federated (docs/reference/kinds.md)."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model, NonNegative
from federation.api.v1alpha1.common import Condition

_RETAINED_PATH = r"^/?[A-Za-z]+([./\[].*)?$"
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


class RetentionRule(Model):
    """A field of the template whose value in the member counts."""

    expression: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """A CEL expression of the value to deliver over `template` and `member`, the two values of the field, and `object`,
    the member object (`metadata`, `spec` and `status`); null leaves the field out. Absent means `member`. It is
    evaluated while the member object has the field."""
    path: Annotated[str, Field(pattern=_RETAINED_PATH, max_length=253)]
    """Dot path of the field, such as spec.replicas, or a JSON pointer for keys that contain dots. A key that ends in []
    is a list, and the path goes on in each of its items by name: spec.template.spec.containers[].image."""


class DriftMode(StrEnum):
    """Repair: fields of the template that somebody changes in a member are written back at once. Report: they stay
    until the next change of the template or the overrides. Stop: they stay, and nothing else is delivered to a drifted
    object.
    """

    REPAIR = "Repair"
    REPORT = "Report"
    STOP = "Stop"


class Drift(Model):
    """The treatment of fields of the template that somebody changes in a member."""

    mode: DriftMode = DriftMode.REPAIR
    """The treatment, unless an annotation of the object says another one (docs/reference/sync.md#drift)."""


_FieldPath = Annotated[str, Field(min_length=1, max_length=253)]
_FieldPaths = Annotated[list[_FieldPath] | None, Field(max_length=32)]
_ResourceName = Annotated[str, Field(max_length=317)]


class FieldCondition(Model):
    """A field and the values with which the condition holds; a missing field has the value ""."""

    path: _FieldPath
    """The path of the field."""
    values: Annotated[list[str], Field(min_length=1, max_length=32)]
    """The values; True and False for booleans."""


class ReplicasFactor(Model):
    """One of the numbers whose product is the number of pods."""

    at_least: _FieldPath | None = None
    """The path of a number that this one is raised to."""
    at_most: _FieldPath | None = None
    """The path of a number that this one is limited to."""
    default: NonNegative | None = None
    """The number where the field is missing; without a default, the product is undefined then."""
    less: NonNegative | None = None
    """The amount subtracted from the number."""
    path: _FieldPath
    """The path of the number."""
    per: _FieldPath | None = None
    """The path of a number that this one is divided by, rounded up."""


class RequestOverhead(Model):
    """An addition to an amount: the field, or else the percentage, and at least a fixed amount."""

    at_least: Annotated[str | None, Field(max_length=32)] = None
    """The least overhead, as a quantity."""
    path: _FieldPath | None = None
    """The path of an overhead, which replaces the others."""
    percent: Annotated[int | None, Field(ge=0, le=1000)] = None
    """A percentage of the amount."""


class RequestFormat(StrEnum):
    """Quantity is Kubernetes' format; in Java's format, 512m are 512 mebibytes."""

    QUANTITY = "Quantity"
    JAVA = "Java"


class ComponentRequest(Model):
    """A resource that the first container of each pod requests."""

    default: Annotated[str | None, Field(max_length=32)] = None
    """The amount where neither a path nor the container has one."""
    format: RequestFormat | None = None
    """The format of amounts; absent means Quantity."""
    overhead: RequestOverhead | None = None
    """The addition to the amount."""
    paths: _FieldPaths = None
    """Paths of the amount; the first with a value counts."""
    resource: _ResourceName | None = None
    """The name of the resource."""
    resource_path: _FieldPath | None = None
    """The path of the name of the resource, instead of `resource`."""


class Component(Model):
    """A group of equal pods that an object starts. Paths are dot paths, or JSON pointers for keys that contain dots;
    all but `at` are relative to what is at `at`.
    """

    at: _FieldPath | None = None
    """The path of the part of the object that describes the component; an object without it does not have the
    component. Absent means the object itself."""
    containers: _FieldPaths = None
    """Paths of containers, or of lists of them, that the pods have besides those of the pod spec."""
    each: bool | None = None
    """Whether `at` is a list or a map, each of whose entries is a component of its own."""
    min_replicas: Annotated[list[ReplicasFactor] | None, Field(max_length=8)] = None
    """The number of pods that must run at the same time, as a product; absent means all of them."""
    name: Annotated[str, Field(min_length=1, max_length=63)]
    """The name of the component, for reasons and plans."""
    name_path: _FieldPath | None = None
    """The path of the name of an entry; absent means its key in a map."""
    pod_specs: _FieldPaths = None
    """Paths of the pod spec; the first that exists counts, and "." is the component itself."""
    replicas: Annotated[list[ReplicasFactor] | None, Field(max_length=8)] = None
    """The number of pods, as a product; absent means one."""
    replicas_otherwise: Annotated[list[ReplicasFactor] | None, Field(max_length=8)] = None
    """The number of pods where `replicas` is undefined."""
    requests: Annotated[list[ComponentRequest] | None, Field(max_length=16)] = None
    """Resources that objects of the kind request in fields of their own."""
    resources: _FieldPaths = None
    """Paths of a container's resources, for kinds that have them outside a pod spec."""
    when: FieldCondition | None = None
    """A field of the component with which it starts pods; absent means always."""


class ComponentStart(StrEnum):
    """Together: the pods start together in one cluster or not at all, so the object is a gang. Independently: each pod
    is of use alone. InSequence: the components run one after the other, and only the largest counts.
    """

    TOGETHER = "Together"
    INDEPENDENTLY = "Independently"
    IN_SEQUENCE = "InSequence"


class KindGang(Model):
    """Whether objects of the kind are gangs, unless their policy says otherwise."""

    start: ComponentStart = ComponentStart.TOGETHER
    """How the components start."""
    when: FieldCondition | None = None
    """A field of the object with which it is a gang; absent means always."""


class FederatedTypeConfigSpec(Model):
    """How objects of one kind are federated."""

    auto_migration: AutoMigrationSwitch | None = None
    """Whether replicas that a cluster cannot schedule may move to other clusters."""
    components: Annotated[list[Component] | None, Field(max_length=32)] = None
    """The pods that objects of the kind start, for kinds without a single pod template. Absent means the shipped
    components, if there are any for the kind; an empty list means that its pods are not counted. An extension of this
    project."""
    controllers: list[list[str]] | None = None
    """The controllers that process an object before it is dispatched: stages in order, each a set. Absent means the
    scheduler, then overrides; with an empty list nothing places its objects."""
    drift: Drift | None = None
    """The treatment of fields that somebody changes in a member; absent means that they are written back. An extension
    of this project."""
    gang: KindGang | None = None
    """Whether objects of the kind are gangs; absent leaves it to the shipped components, or means that they are. An
    extension of this project."""
    health: HealthRule | None = None
    """Whether an object is healthy in one cluster, for the failover of applications. An extension of this project."""
    path_definition: PathDefinition | None = None
    """Dot paths of the fields that scheduling and status use."""
    retention: Annotated[list[RetentionRule] | None, Field(max_length=32)] = None
    """Fields of the template whose value in the member counts. An extension of this project."""
    source_type: SourceType
    """The kind of the source objects."""
    status_aggregation: StatusAggregation = StatusAggregation()
    """Whether and how the members' status is merged into the source object."""
    status_collection: StatusCollection | None = None
    """Whether fields of the member objects are collected, and which."""


class FederatedTypeConfigStatus(Model):
    """The configuration as it is."""

    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The condition VersionCurrent says whether the configuration names the version that the host stores. Only kinds of
    a CustomResourceDefinition have it. An extension of this project."""


class FederatedTypeConfig(Kind):
    """FederatedTypeConfig makes a kind of objects federated."""

    DEFINITION: ClassVar[Definition] = Definition(
        FEDERATED_TYPE_CONFIGS, "ftc", columns=(Column("Kind", ".spec.sourceType.kind"), AGE)
    )

    spec: FederatedTypeConfigSpec
    status: FederatedTypeConfigStatus | None = None
