"""Topology spread of sharded services: TopologySpreadPlan (docs/reference/topologyspreadplan.md).

It writes constraints into StatefulSets of the host, and checks the live pods. `controller.py` watches, `reconcile.py`
acts, `observer.py` reads the caches of members, `rules/` decides. `hold.py` delays the delivery of a new StatefulSet
until it has its constraints. `command.py` is `fedctl topology`, `view.py` answers it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    import typer

    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings
    from federation.runtime.host import Host
    from federation.runtime.sourceholds import SourceHold
    from federation.web.view import View


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.topologyspreadplan.model import TopologySpreadPlan

    return (TopologySpreadPlan,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.topologyspreadplan.controller import TopologySpreadController

    return {"topologyspread": TopologySpreadController(surroundings.host)}


def _holds(host: "Host") -> Sequence["SourceHold"]:
    from federation.features.topologyspreadplan.controller import ConstraintHold

    return (ConstraintHold(host),)


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    del host
    from federation.admission.authors import AuthorAdmission

    return (AuthorAdmission(resources=[TOPOLOGY_SPREAD_PLANS.group_resource]),)


def _views(host: "Host") -> Sequence["View"]:
    from federation.features.topologyspreadplan.view import TopologyView

    return (TopologyView(host),)


def _topology() -> "typer.Typer":
    from federation.features.topologyspreadplan.command import app

    return app


FEATURE = Feature(
    "topologyspreadplan",
    page="topologyspreadplan.md",
    kinds=_kinds,
    controllers=_controllers,
    holds=_holds,
    admission=_admission,
    views=_views,
    commands={"topology": _topology},
)
