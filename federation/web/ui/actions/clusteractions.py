"""Actions on clusters: cordon, drain and uncordon. One row each; pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.planning.clusters.taintedits import cordoned, drained, uncordoned
from federation.plans.edits import Edit
from federation.web.ui.actions.action import Action, Form, Subject

Taints = Sequence[Mapping[str, Any]]


def _row(name: str, title: str, change: Callable[[Taints, datetime], Taints], text: str) -> Action:
    def changed(subject: Subject) -> Taints:
        return change(subject.spec.get("taints") or [], subject.now)

    def applies(subject: Subject) -> bool:
        is_cluster = subject.resource.group_resource == FEDERATED_CLUSTERS.group_resource
        return is_cluster and list(changed(subject)) != list(subject.spec.get("taints") or [])

    def to_edit(subject: Subject, form: Form) -> Edit:
        del form
        return subject.merge({"spec": {"taints": list(changed(subject)) or None}})

    return Action(name, title, title, applies, to_edit, lambda _: text)


ACTIONS: Sequence[Action] = (
    _row("cordon", "Cordon", cordoned, "Nothing new is placed in the cluster. What runs there stays."),
    _row(
        "drain",
        "Drain",
        drained,
        "Everything that may leave moves to other clusters, and nothing new is placed in this one. Replicas start there"
        " before they stop here.",
    ),
    _row("uncordon", "Uncordon", lambda taints, _: uncordoned(taints), "The cluster takes new replicas again."),
)
