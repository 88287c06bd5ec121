"""Queues for jobs over the whole fleet: CapacityFlavor, ClusterJobQueue, JobQueue (docs/reference/queues.md).

`queueevents.py` keeps a state of all that waits and all that is used, `rules/` decides, `reconcile.py` writes whether
an object may be placed and where (`scheduling/jobqueues.py`), and the scheduler places it. `screens.py` shows queues in
the web UI, with their course from `usagehistory.py`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from federation.api.resources import JOB_QUEUES
from federation.featureapi.feature import Feature, Loop, Rights

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.featureapi.surroundings import Surroundings
    from federation.runtime.host import Host
    from federation.scheduling.chain import Step
    from federation.web.ui.screen import Screen
    from federation.web.view import View


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.queues.model import CapacityFlavor, ClusterJobQueue, JobQueue

    return (CapacityFlavor, ClusterJobQueue, JobQueue)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.queues.controller import QueueController

    return {"queues": QueueController(surroundings.host, surroundings.gate_transport)}


def _screens() -> Sequence["Screen"]:
    from federation.features.queues.screens import SCREENS

    return SCREENS


def _views(host: "Host") -> Sequence["View"]:
    from federation.features.queues.queuehistory import QueueHistoryView

    return (QueueHistoryView(host),)


def _queue() -> Any:
    from federation.features.queues.command import queue_command

    return queue_command


def _steps() -> Sequence["Step"]:
    from federation.features.queues.queuesteps import STEPS

    return STEPS


FEATURE = Feature(
    "queues",
    page="queues.md",
    kinds=_kinds,
    rights=Rights(read=(JOB_QUEUES,)),
    controllers=_controllers,
    steps=_steps,
    views=_views,
    screens=_screens,
    commands={"queue": _queue},
)
