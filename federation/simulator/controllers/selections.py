"""Objects that select pods by labels: which pods one selects, and which objects select a pod, both by index.

Thousands of Services or PodDisruptionBudgets stay cheap: each side is indexed by one label, and only candidates with
that label are compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import Selector
from federation.runtime.informer import Informer

_BY_LABEL = "label"
_BY_SELECTOR = "selected-label"
_ANY = "*"


def index_pods(pods: Informer) -> None:
    """Index pods by each of their labels."""
    pods.add_index(_BY_LABEL, _label_values)


def _label_values(pod: Object) -> list[str]:
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    return [_value(namespace, key, value) for key, value in labels.items()]


def _value(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


class Selections:
    """The objects of one kind that select pods.

    `labels_of` returns the labels that an object requires of a pod, None for one that selects nothing; `selector_of`
    its whole selector. `index_pods` must have been called.
    """

    def __init__(
        self,
        selecting: Informer,
        pods: Informer,
        labels_of: Callable[[Object], Mapping[str, str] | None],
        selector_of: Callable[[Object], Selector],
    ) -> None:
        self._selecting = selecting
        self._pods = pods
        self._labels_of = labels_of
        self._selector_of = selector_of
        selecting.add_index(_BY_SELECTOR, self._selector_value)

    def _selector_value(self, obj: Object) -> list[str]:
        labels, namespace = self._labels_of(obj), obj["metadata"]["namespace"]
        if labels is None:
            return []
        if not labels:
            return [_value(namespace, _ANY, _ANY)]
        key = min(labels)
        return [_value(namespace, key, labels[key])]

    def pods_of(self, obj: Object) -> list[Object]:
        """Return the pods that the object selects, by name."""
        values = self._selector_value(obj)
        if not values:
            return []
        namespace = obj["metadata"]["namespace"]
        is_any = values[0] == _value(namespace, _ANY, _ANY)
        candidates = self._pods.list(namespace) if is_any else self._pods.by_index(_BY_LABEL, values[0])
        selector = self._selector_of(obj)
        found = [pod for pod in candidates if selector.matches(pod["metadata"].get("labels"))]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def selecting(self, pod: Mapping[str, Any]) -> list[Object]:
        """Return the objects that select the pod."""
        namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
        values = [_value(namespace, _ANY, _ANY), *(_value(namespace, key, value) for key, value in labels.items())]
        candidates = [obj for value in values for obj in self._selecting.by_index(_BY_SELECTOR, value)]
        return [obj for obj in candidates if self._selector_of(obj).matches(labels)]
