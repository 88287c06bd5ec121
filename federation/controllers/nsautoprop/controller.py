"""Triggers of namespace propagation, and its wiring; the steps are in `reconcile.py`.

A cluster that appears, joins or leaves triggers a reconcile of every namespace.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import NAMESPACES, Object
from federation.controllers.nsautoprop.reconcile import WRITER, Reconciler
from federation.planning.federatedobject import namespaces, pendingcontrollers
from federation.planning.projects.projectindex import ProjectIndex
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_JOIN_S = 0.5
"""The delay after a join: a write of every namespace for each of 1,000 clusters would be a million placements."""
_TRIGGERS = Triggers(
    annotations=True,
    deletion=False,
    is_due=partial(pendingcontrollers.is_due, controller=names.NSAUTOPROP_CONTROLLER),
    is_pending=partial(pendingcontrollers.is_at_head, controller=names.NSAUTOPROP_CONTROLLER),
)


@dataclass(frozen=True, slots=True)
class NamespaceOptions:
    """The excluded namespaces, and limits."""

    exclude_regexp: str = ""
    """Namespaces in whose name this regular expression is found stay on the host; "" excludes none."""
    workers: int = 4
    """Namespaces that are reconciled at the same time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)

    def pattern(self) -> re.Pattern[str] | None:
        """Return the compiled expression; ConfigurationError when it is none."""
        if not self.exclude_regexp:
            return None
        try:
            return re.compile(self.exclude_regexp)
        except re.error as error:
            raise ConfigurationError(
                f"ns-autoprop-exclude-regexp {self.exclude_regexp!r} is not a regular expression: {error}"
            ) from error


class NamespaceController:
    """Keeps namespaces in every joined cluster. `run` works until cancelled."""

    def __init__(self, host: Host, *, options: NamespaceOptions | None = None) -> None:
        chosen = options or NamespaceOptions()
        self._objects = host.objects
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._projects = host.informers.for_resource(PROJECTS)
        self._index = ProjectIndex()
        reconciler = Reconciler(
            host.objects, clusters=self._clusters.list, exclude=chosen.pattern(), projects=self._index
        )
        self.controller: Controller[Key] = Controller(
            "nsautoprop",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=self._namespaces,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._clusters.add_handler(self._on_cluster)
        self._projects.add_handler(self._on_project)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced(), self._projects.wait_synced())
        await self.controller.run()

    def _on_federated(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is not None and namespaces.is_namespace(new):
            self.controller.enqueue(key_of(new))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        was_target, is_target = _is_target(old), _is_target(new)
        if was_target != is_target or (len(self._index) and _labels(old) != _labels(new)):
            self._enqueue_all(after_s=_JOIN_S if is_target and not was_target else 0.0)

    def _on_project(self, old: Object | None, new: Object | None) -> None:
        if self._index.put(new) if new is not None else self._index.remove((old or {})["metadata"]["name"]):
            self._enqueue_all()

    def _enqueue_all(self, after_s: float = 0.0) -> None:
        for key in self._namespaces():
            self.controller.enqueue(key, after_s=after_s)

    def _namespaces(self) -> Iterator[Key]:
        return map(key_of, self._objects.of_kind(NAMESPACES.group_kind))


def _labels(cluster: Object | None) -> object:
    return None if cluster is None else cluster["metadata"].get("labels")


def _is_target(cluster: Object | None) -> bool:
    if cluster is None or cluster["metadata"].get("deletionTimestamp"):
        return False
    return conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)
