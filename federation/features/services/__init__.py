"""Services across clusters: ServiceExport and ServiceImport (docs/reference/multicluster.md).

`exportcontroller.py` and `exportreconcile.py` copy the EndpointSlices of exported Services from the members to the
host, `importcontroller.py` and `importreconcile.py` place them where they are imported. `rules/` decides.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.featureapi.surroundings import Surroundings


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.services.model import ServiceExport, ServiceImport

    return (ServiceExport, ServiceImport)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.services.exportcontroller import ServiceExportController, ServiceExportOptions
    from federation.features.services.importcontroller import ServiceImportController

    options = ServiceExportOptions(toleration_s=surroundings.toleration_s)
    return {
        "serviceexport": ServiceExportController(surroundings.host, options),
        "serviceimport": ServiceImportController(surroundings.host),
    }


FEATURE = Feature("services", page="multicluster.md", kinds=_kinds, controllers=_controllers)
