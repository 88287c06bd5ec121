"""The base of all our kinds: models whose fields, defaults and docstrings are the CRD schema.

The models exist to generate CRD manifests (`structural.py`, `definitions.py`, `tools/generate_crds.py`) and to give
documentation and tests one typed reading of each kind. Controllers work on plain mappings and never import them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from federation.apimachinery.resources import Resource

Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
NonNegative = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
DateTime = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Duration = Annotated[str, Field(json_schema_extra={"format": "duration"})]
Bytes = Annotated[str, Field(json_schema_extra={"format": "byte"})]
AnyValue = Annotated[Any, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
AnyObject = Annotated[
    dict[str, Any],
    Field(json_schema_extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""The pattern of a label key."""
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
QuantityText = Annotated[
    int | str,
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}),
]


class Model(BaseModel):
    """A part of one of our kinds, in camelCase on the wire; unknown fields are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,  # few of them are ever validated
        extra="forbid",
        frozen=True,
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    json_path: str
    type: str = "string"
    is_wide: bool = False
    """Whether the column is shown only with `-o wide`."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The parts of a CRD besides its schema."""

    resource: Resource
    short_name: str = ""
    has_status: bool = True
    columns: tuple[Column, ...] = ()
    also_served: tuple[str, ...] = ()
    """Other versions that are served, with the same schema; the resource's own version is stored."""
    is_scalable: bool = False
    """Whether the scale subresource is served, on spec.replicas, status.replicas and status.labelSelector."""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class ObjectMeta(Model):
    """Standard object's metadata."""

    model_config = ConfigDict(extra="allow")


class PolicyMeta(ObjectMeta):
    """Standard object's metadata; the name is used as a label value, so it has at most 63 characters."""

    name: Annotated[str | None, Field(max_length=63)] = None


class Kind(Model):
    """A served kind."""

    DEFINITION: ClassVar[Definition]

    api_version: str | None = None
    """APIVersion defines the versioned schema of this representation of an object."""
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents."""
    metadata: ObjectMeta | None = None
