"""The result of a conversion: the objects to apply, and notes about fields that they do not have. Pure."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Note:
    """A field of the input that the objects do not express, or express differently."""

    source: str
    """Kind, namespace and name of the manifest: "Kind namespace/name"."""
    field: str
    """The path of the field in that manifest, such as spec.placement.clusterAffinity."""
    message: str
    """The difference, and what to do about it."""


@dataclass(frozen=True)
class Conversion:
    """The objects and notes that one source makes of the manifests."""

    objects: list[dict[str, Any]]
    """The objects to apply, in the order in which they take effect."""
    notes: list[Note]
    """The parts of the original that the objects do not express."""
