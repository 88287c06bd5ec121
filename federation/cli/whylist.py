"""`fedctl why -A` and `fedctl why -n NAMESPACE`: one line for each federated object, with `--failed` only for problems.

It reads the conditions and statuses that the controllers write on federated objects; `fedctl why KIND/NAME` has the
whole explanation of one object.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery import conditions
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import Object
from federation.planning.diagnosis.deliverystage import Stage, stage_of
from federation.planning.federatedobject.placements import effective_placement
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.terminal.printing import print_rows

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PAGE = 500
_OBJECTS = "/federation/v1/objects"
_DECISIVE = (
    names.SCHEDULED,
    names.OVERRIDES_APPLIED,
    names.ADMITTED,
    names.PROPAGATED,
    names.FOLLOWERS_DELIVERED,
    names.STATUS_AGGREGATED,
)
"""Conditions in the order of the pipeline: the first one that is not fulfilled is the cause of the others."""
_IN_PROGRESS = "InProgress"
_OF_DELIVERY = (names.PROPAGATED, names.STATUS_AGGREGATED)
"""Conditions that are not fulfilled either while an object is on its way to its clusters."""
_UNDERWAY = frozenset((Stage.PENDING, Stage.PROPAGATING, Stage.DELETING))
_HEADINGS = "NAMESPACE, KIND, NAME, CLUSTERS, STATE"


class State(NamedTuple):
    """How far an object is: `reason` is "" when it is where it should be."""

    reason: str
    message: str = ""

    @property
    def is_failed(self) -> bool:
        """Whether something is wrong, rather than not done yet."""
        return self.reason not in ("", _IN_PROGRESS)


def state_of(federated: Object) -> State:
    """Return the first condition of a federated object that is not fulfilled, unless the object is on its way."""
    stage = stage_of(federated)
    found = (federated.get("status") or {}).get("conditions")
    for type_ in _DECISIVE:
        condition = conditions.find(found, type_)
        if condition is None or condition.get("status") == "True":
            continue
        reason, message = str(condition.get("reason") or f"Not{type_}"), str(condition.get("message") or "")
        if reason == names.REASON_NO_POLICY and not federated["metadata"].get("namespace"):
            return State("", "no policy selects it")  # usual for definitions, classes and roles
        if stage in _UNDERWAY and type_ in _OF_DELIVERY and reason != names.REASON_NO_POLICY:
            return State(_IN_PROGRESS, message)
        return State(reason, message)
    return State(_IN_PROGRESS if stage in _UNDERWAY else "")


class Listed(NamedTuple):
    """One object of the list, and the document that is printed of it."""

    namespace: str
    kind: str
    name: str
    clusters: Sequence[str]
    state: State
    document: Object

    def to_row(self) -> list[str]:
        """Return its cells."""
        message = self.state.message or ", ".join(self.clusters) or "-"
        reason = self.state.reason or "OK"
        return [self.namespace or "-", self.kind, self.name, str(len(self.clusters)), reason, message]


async def why_all(context: KubeconfigContext, namespace: str, output: str, *, only_failed: bool) -> int:
    """Print the objects of a namespace, of all for ""; return 1 if `only_failed` and there are some."""
    async with context.client() as host:
        found = await _read(host, namespace)
    shown = [each for each in found if each.state.is_failed or not only_failed]
    where = f"in namespace {namespace}" if namespace else "in the federation"
    empty = f"no object {where} has failed" if only_failed else f"nothing {where} is federated"
    rows = (each.to_row() for each in shown)
    print_rows([each.document for each in shown], output, empty, rows, _HEADINGS, "MESSAGE")
    return 1 if only_failed and shown else 0


async def _read(host: "HTTPClient", namespace: str) -> list[Listed]:
    """Return the objects, those without a namespace first and only if all are wanted and may be read.

    A role in a namespace does not allow to list federated objects. Its user gets a summary of the objects that he may
    list there.
    """
    items: list[Object] = []
    if not namespace:
        with contextlib.suppress(Forbidden):  # a user of some namespaces sees the objects in them
            items += await _pages(host, CLUSTER_FEDERATED_OBJECTS, "")
    try:
        items += await _pages(host, FEDERATED_OBJECTS, namespace)
    except Forbidden:
        if not namespace:
            raise
        summaries = await _summaries(host, namespace)
        if summaries is None:
            raise
        return [from_summary(summary) for summary in summaries]
    return [_from_federated(item) for item in items]


async def _summaries(host: "HTTPClient", namespace: str) -> list[Object] | None:
    """Return the summaries of the objects that the user may list, None if he may list no kind there."""
    found: list[Object] = []
    query = {"namespace": namespace, "limit": str(_PAGE)}
    while True:
        answer: Any = await get_json(host, _OBJECTS, query)
        if not answer["kinds"]:
            return None
        found += answer["items"]
        if not (after := answer["metadata"].get("continue")):
            return found
        query["continue"] = after


async def _pages(host: "HTTPClient", resource: Any, namespace: str) -> list[Object]:
    items = [item async for item in host.list_all(resource, namespace, limit=_PAGE)]
    return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))


def _from_federated(federated: Object) -> Listed:
    template: Mapping[str, Any] = federated["spec"]["template"]
    return Listed(
        federated["metadata"].get("namespace") or "",
        str(template.get("kind")),
        str((template.get("metadata") or {}).get("name")),
        sorted(effective_placement(federated)),
        state_of(federated),
        federated,
    )


def from_summary(summary: Mapping[str, Any]) -> Listed:
    """Return the object of a summary of `/federation/v1/objects`."""
    namespace, kind, name = (str(summary[field]) for field in ("namespace", "kind", "name"))
    state = State(_IN_PROGRESS if summary["stage"] in _UNDERWAY else "")
    if summary["stage"] == Stage.UNSELECTED:
        state = State(names.REASON_NO_POLICY, "no policy selects it")
    for problem in summary["problems"][:1]:
        # Not every problem has a condition, and servers of an earlier version do not tell the reason.
        named = "".join(part.capitalize() for part in str(problem["attention"]).split("-"))
        state = State(str(problem.get("reason") or named), str(problem["text"]))
    group = f"{summary['group']}/" if summary["group"] else ""
    document = {
        "apiVersion": group + str(summary["version"]),
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "summary": {key: summary[key] for key in ("stage", "clusters", "wanted", "ready", "problems")},
    }
    return Listed(namespace, kind, name, sorted(summary["clusters"]), state, document)
