"""PropagatedVersion and ClusterPropagatedVersion: what was last written to which cluster (docs/reference/kinds.md)."""

from typing import ClassVar

from federation.api.resources import CLUSTER_PROPAGATED_VERSIONS, PROPAGATED_VERSIONS
from federation.api.v1alpha1.base import Definition, Kind, Model


class ClusterObjectVersion(Model):
    """The version of the object in one cluster."""

    cluster_name: str
    """The name of the cluster."""
    version: str
    """The version of the member object after our last write."""


class PropagatedVersionStatus(Model):
    """The versions of the template, of the overrides and of the member objects that belong together."""

    cluster_versions: list[ClusterObjectVersion] | None = None
    """The versions by cluster."""
    overrides_version: str
    """The version of the overrides."""
    template_version: str
    """The version of the template."""


class PropagatedVersion(Kind):
    """PropagatedVersion records what was last written of a namespaced object."""

    DEFINITION: ClassVar[Definition] = Definition(PROPAGATED_VERSIONS)

    status: PropagatedVersionStatus | None = None


class ClusterPropagatedVersion(Kind):
    """ClusterPropagatedVersion records what was last written of a cluster-scoped object."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_PROPAGATED_VERSIONS)

    status: PropagatedVersionStatus | None = None
