"""OverridePolicy and ClusterOverridePolicy: differences of objects between clusters.

Reference: docs/reference/kinds.md and docs/reference/overrides.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES
from federation.api.v1alpha1.base import AGE, AnyValue, Column, Definition, Kind, Model, QuantityText
from federation.api.v1alpha1.changewaves import ChangeRollout, PolicyStatus
from federation.api.v1alpha1.common import ClusterSelectorTerm, ResourceSelector
from federation.api.v1alpha1.rolloutwaves import Rollout


class MapOperator(StrEnum):
    """Add absent entries, overwrite existing ones, or delete entries."""

    ADD_IF_ABSENT = "addIfAbsent"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class ListOperator(StrEnum):
    """Append to a list, overwrite it, or delete elements of it."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class ImageComponent(StrEnum):
    """A part of an image reference."""

    REGISTRY = "Registry"
    REPOSITORY = "Repository"
    TAG = "Tag"
    DIGEST = "Digest"


class JSONPatchOperator(StrEnum):
    """The operations of RFC 6902 that need no second path; the empty one means replace."""

    NONE = ""
    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"
    TEST = "test"


class ConfigMapKeySelector(Model):
    """A key of a ConfigMap."""

    key: str
    """The key to select."""
    name: str = ""
    """The name of the ConfigMap."""
    optional: bool | None = None
    """Whether the ConfigMap or its key may be missing."""


class SecretKeySelector(Model):
    """A key of a Secret."""

    key: str
    """The key to select."""
    name: str = ""
    """The name of the Secret."""
    optional: bool | None = None
    """Whether the Secret or its key may be missing."""


class ObjectFieldSelector(Model):
    """A field of the Pod."""

    api_version: str | None = None
    """The schema version of the path, v1 by default."""
    field_path: str
    """The path of the field."""


class ResourceFieldSelector(Model):
    """A resource of a container."""

    container_name: str | None = None
    """The container; required for volumes."""
    divisor: QuantityText | None = None
    """The unit of the value, 1 by default."""
    resource: str
    """The resource, for example limits.cpu."""


class EnvVarSource(Model):
    """The source of an environment variable's value."""

    config_map_key_ref: ConfigMapKeySelector | None = None
    """A key of a ConfigMap."""
    field_ref: ObjectFieldSelector | None = None
    """A field of the Pod."""
    resource_field_ref: ResourceFieldSelector | None = None
    """A resource of a container."""
    secret_key_ref: SecretKeySelector | None = None
    """A key of a Secret."""


class EnvVar(Model):
    """An environment variable of a container."""

    name: str
    """The name of the variable."""
    value: str | None = None
    """The value of the variable."""
    value_from: EnvVarSource | None = None
    """The source of the value; it excludes a value."""


class ImageOperation(Model):
    """A change of one part of an image reference."""

    image_component: ImageComponent
    """The part to change."""
    operator: MapOperator | None = None
    """The operation on the part; overwrite by default."""
    value: str | None = None
    """The new part; required for addIfAbsent."""


class ImageOverrider(Model):
    """Changes images part by part."""

    container_names: list[str] | None = None
    """The containers and init containers to change; empty changes all. Not used together with imagePath."""
    image_path: Annotated[str | None, Field(pattern="^(/|$)")] = None
    """A JSON pointer to the image, for kinds whose containers cannot be found by kind."""
    operations: list[ImageOperation]
    """The changes, in order."""


class CommandOverrider(Model):
    """Changes the command or the arguments of a container."""

    container_name: str
    """The container or init container to change; nothing is done when there is none of that name."""
    operator: ListOperator | None = None
    """The operation on the list; required."""
    value: list[str]
    """The elements to append, to set or to delete."""


class EnvOverrider(Model):
    """Changes the environment of a container."""

    container_name: str
    """The container or init container to change; nothing is done when there is none of that name."""
    operator: MapOperator | None = None
    """The operation on the variables; overwrite by default."""
    value: list[EnvVar]
    """The variables to add, to overwrite or to delete (by name)."""


class StringMapOverrider(Model):
    """Changes annotations or labels."""

    operator: MapOperator | None = None
    """The operation on the entries; overwrite by default."""
    value: dict[str, str]
    """The entries to add, to overwrite or to delete (by key)."""


class JSONPatchOverrider(Model):
    """One operation of a JSON patch."""

    operator: JSONPatchOperator | None = None
    """add, remove, replace or test; replace by default."""
    path: Annotated[str, Field(pattern="^/([^~]|~[01])*$")]
    """A JSON pointer (RFC 6901) to the field, for example /spec/template/spec/containers/0/image."""
    value: AnyValue = None
    """The value to add, to set or to compare with."""


class DocumentOperator(StrEnum):
    """Changes of a document inside a text; the empty one means replace."""

    NONE = ""
    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


class DocumentOperation(Model):
    """One change of a document inside a text."""

    operator: DocumentOperator | None = None
    """add, remove or replace; replace by default."""
    sub_path: Annotated[str, Field(pattern="^/([^~]|~[01])*$")]
    """A JSON pointer (RFC 6901) inside the document, for example /database/host."""
    value: AnyValue = None
    """The value to add or to set."""


class FieldOverrider(Model):
    """Changes values of a YAML or JSON document that is the text of a field."""

    field_path: Annotated[str, Field(pattern="^/([^~]|~[01])*$")]
    """A JSON pointer to the text, for example /data/app.yaml. The text of a Secret's data is decoded and encoded."""
    json_: Annotated[list[DocumentOperation] | None, Field(alias="json")] = None
    """The changes of a JSON document, in order."""
    yaml: list[DocumentOperation] | None = None
    """The changes of a YAML document, in order. Comments are lost."""


class Overriders(Model):
    """Changes, applied in this order: image, command, args, envs, annotations, labels, fields, jsonpatch."""

    annotations: list[StringMapOverrider] | None = None
    """Changes of the object's annotations."""
    args: list[CommandOverrider] | None = None
    """Changes of containers' arguments."""
    command: list[CommandOverrider] | None = None
    """Changes of containers' commands."""
    envs: list[EnvOverrider] | None = None
    """Changes of containers' environments."""
    fields: list[FieldOverrider] | None = None
    """Changes of YAML or JSON documents inside texts. An extension of this project."""
    image: list[ImageOverrider] | None = None
    """Changes of images."""
    jsonpatch: list[JSONPatchOverrider] | None = None
    """Changes of any field."""
    labels: list[StringMapOverrider] | None = None
    """Changes of the object's labels."""


class TargetClusters(Model):
    """Clusters that match all given criteria."""

    cluster_affinity: list[ClusterSelectorTerm] | None = None
    """Terms over cluster labels and names, of which at least one must match."""
    cluster_selector: dict[str, str] | None = None
    """Labels that a cluster must carry."""
    clusters: list[str] | None = None
    """The names of the clusters; empty allows all."""


class OverrideRule(Model):
    """Changes for some of the clusters. Rules apply in order, each on the result of those before."""

    overriders: Overriders | None = None
    """The changes."""
    target_clusters: TargetClusters | None = None
    """The clusters to change the object in; absent means all."""


class OverridePolicySpec(Model):
    """The overrides of the policy."""

    change_rollout: ChangeRollout | None = None
    """The waves in which objects get a change of this policy; absent changes all objects at once. An extension of this
    project."""
    override_rules: list[OverrideRule] | None = None
    """The rules, in order."""
    resource_selectors: list[ResourceSelector] | None = None
    """The objects that the policy applies to without a label on them. An object's policy label wins over it. An
    extension of this project."""
    rollout: Rollout | None = None
    """The waves in which clusters get a new pod template, of objects whose propagation policy has none. Of several
    override policies, the first in the order of application decides. An extension of this project."""


_COLUMNS = (Column("Objects", ".status.refCount", "integer"), AGE)


class OverridePolicy(Kind):
    """OverridePolicy describes how the objects of its namespace differ between clusters."""

    DEFINITION: ClassVar[Definition] = Definition(OVERRIDE_POLICIES, "op", columns=_COLUMNS)

    spec: OverridePolicySpec
    status: PolicyStatus | None = None


class ClusterOverridePolicy(Kind):
    """ClusterOverridePolicy describes how objects of any namespace, or of none, differ between clusters."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_OVERRIDE_POLICIES, "cop", columns=_COLUMNS)

    spec: OverridePolicySpec
    status: PolicyStatus | None = None
