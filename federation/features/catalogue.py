"""The leaf features of the product. A new one is a folder beside this module, and a line here."""

from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature
from federation.features import (
    applicationfailover,
    autoscaling,
    clusterprofiles,
    clusterrules,
    convert,
    cronfederatedhpa,
    devices,
    kubefed,
    kueue,
    podgroups,
    preemption,
    projects,
    queues,
    services,
    topologyspreadplan,
    types,
    uniteddeployment,
    volumemoves,
    waves,
    workloadspread,
)

if TYPE_CHECKING:
    from federation.client.client import Client
    from federation.runtime.host import Host
    from federation.runtime.sourceholds import SourceHold
    from federation.scheduling.chain import Chain
    from federation.scheduling.whatif.forecasts import Forecasting
    from federation.web.ui.screen import Screen
    from federation.web.view import View

FEATURES: tuple[Feature, ...] = (
    applicationfailover.FEATURE,
    autoscaling.FEATURE,
    clusterprofiles.FEATURE,
    clusterrules.FEATURE,
    convert.FEATURE,
    cronfederatedhpa.FEATURE,
    devices.FEATURE,
    kubefed.FEATURE,
    kueue.FEATURE,
    podgroups.FEATURE,
    preemption.FEATURE,
    projects.FEATURE,
    queues.FEATURE,
    services.FEATURE,
    topologyspreadplan.FEATURE,
    types.FEATURE,
    uniteddeployment.FEATURE,
    volumemoves.FEATURE,
    waves.FEATURE,
    workloadspread.FEATURE,
)


async def start_features(client: "Client", *, has_existing_host: bool) -> None:
    """Create on the host what the features need before controllers run."""
    for feature in FEATURES:
        await feature.start(client, has_existing_host)


def feature_holds(host: "Host") -> list["SourceHold"]:
    """Return what holds new objects of the host until the features have written into them."""
    return [hold for feature in FEATURES for hold in feature.holds(host)]


def feature_views(host: "Host") -> list["View"]:
    """Return what the features serve below `/federation/v1`."""
    return [view for feature in FEATURES for view in feature.views(host)]


def feature_screens() -> list["Screen"]:
    """Return the screens that the features add to the web UI."""
    return [screen for feature in FEATURES for screen in feature.screens()]


def feature_forecasts() -> list["Forecasting"]:
    """Return what follows from changes of the features' kinds, for plans."""
    return [forecast for feature in FEATURES for forecast in feature.forecasts()]


def decision_chain() -> "Chain":
    """Return the steps of a decision: those of the spine, and those of the features."""
    from federation.scheduling.chain import to_chain
    from federation.scheduling.gates import GATES
    from federation.scheduling.permits.spinepermits import PERMITS
    from federation.scheduling.shapes import SHAPES

    steps = (step for feature in FEATURES for step in feature.steps())
    return to_chain([*GATES, *SHAPES, *PERMITS, *steps])
