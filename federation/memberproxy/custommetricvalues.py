"""Values of `custom.metrics.k8s.io` that members report, and the one list that the host makes of them. Pure.

A list of several objects (`*`) has the values of all clusters, each with the object's name on the host. A request for
one pod or node means that of one cluster. Any other object has the same name everywhere, so its value is the average
of the clusters that have one, in whole thousandths, as KubeAdmiral's aggregator averages whole units.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.errors import ClusterError, Conflict, NotFound, not_served
from federation.apimachinery.paths import ResourcePath
from federation.apimachinery.quantity import INT64_MAX, NANOS, Quantity, parse
from federation.apimachinery.resources import Object
from federation.memberproxy.mergednames import is_hashed, merged_name, possible_clusters, raw_name

GROUP: Final = "custom.metrics.k8s.io"
VERSIONS: Final = ("v1beta1", "v1beta2")
ALL: Final = "*"
"""The name of an object that stands for all objects of the label selector."""
_IN_ONE_CLUSTER: Final = ("pods", "nodes")
"""Resources whose objects have names of the form CLUSTER-NAME on the host."""
_TEXT_LENGTH_MAX: Final = 253
_MILLI: Final = NANOS // 1000


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """A metric of some objects. For one of the namespace itself `plural` is "metrics" and `name` is ""."""

    version: str
    namespace: str
    plural: str
    name: str
    metric: str

    @property
    def is_list(self) -> bool:
        """Whether it is for several objects."""
        return self.name == ALL

    @property
    def is_in_one_cluster(self) -> bool:
        """Whether its objects have names of the form CLUSTER-NAME on the host."""
        return self.plural in _IN_ONE_CLUSTER

    def names(self, clusters: Iterable[str]) -> dict[str, str]:
        """Return the clusters that can have values, with the name to ask each for."""
        if self.is_list or not self.is_in_one_cluster:
            return dict.fromkeys(clusters, self.name)
        # A hash has replaced the end of the name: only the values of all objects tell which one has it.
        named = {
            cluster: ALL if is_hashed(self.name) else raw_name(cluster, self.name)
            for cluster in possible_clusters(clusters, self.name)
        }
        return {cluster: name for cluster, name in named.items() if name}

    def path(self, name: str) -> str:
        """Return the path of the request to a member, for the object's name there."""
        parts = ["namespaces", self.namespace] if self.namespace else []
        parts += [self.plural, name, self.metric] if name else [self.plural, self.metric]
        return "/".join(("/apis", GROUP, self.version, *parts))


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value that a member reported."""

    api_version: str
    kind: str
    name: str
    amount: Quantity
    time: datetime
    window_s: int | None
    selector: Mapping[str, Any] | None


def to_query(path: ResourcePath) -> MetricQuery:
    """Return what a path asks for; NotFound for one that has no metric."""
    if path.plural == "metrics" and path.namespace and path.name and not path.subresource:
        return MetricQuery(path.version, path.namespace, path.plural, "", path.name)
    if not path.subresource:
        raise not_served()
    return MetricQuery(path.version, path.namespace, path.plural, path.name, path.subresource)


def from_answer(cluster: str, query: MetricQuery, name: str, answer: Object) -> list[MetricValue]:
    """Return the values of an answer about the object `name`; ClusterError unless it is a list of such values."""
    items = answer.get("items")
    if not isinstance(items, list):
        raise ClusterError(f"cluster {cluster} answered without a list of metrics")
    wanted = name or query.namespace
    found = [_from_item(cluster, query, item) for item in items]
    if wanted != ALL and [value.name for value in found] != [wanted]:
        raise ClusterError(f"cluster {cluster} answered without the one value of {wanted}")
    return found


def merge(query: MetricQuery, found: Mapping[str, Sequence[MetricValue]]) -> Object:
    """Return the MetricValueList of the host; Conflict if a name means several objects, NotFound without a value."""
    if query.is_list or query.is_in_one_cluster:
        named = [
            (cluster, replace(value, name=merged_name(cluster, value.name)))
            for cluster, values in found.items()
            for value in values
        ]
        values = [value for _, value in named if query.is_list or value.name == query.name]
    else:
        values = [value for reported in found.values() for value in reported]
        values = [_average(values)] if values else []
    if not values and not (query.is_list and found):
        subject = f"{query.plural} {query.name}" if query.name else f"namespace {query.namespace}"
        raise NotFound(f"no cluster with objects of the federation has the metric {query.metric} of {subject}")
    if not query.is_list and len(values) > 1:
        clusters = " and ".join(f'"{cluster}"' for cluster, value in named if value.name == query.name)
        raise Conflict(f'{query.plural} "{query.name}" means objects of clusters {clusters}: use * to list all')
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{GROUP}/{query.version}",
        "metadata": {},
        "items": [_to_item(query, value) for value in values],
    }


def _average(values: Sequence[MetricValue]) -> MetricValue:
    total = sum(value.amount.milli for value in values)
    milli = abs(total) // len(values) * (1 if total >= 0 else -1)
    windows = [value.window_s for value in values if value.window_s is not None]
    return replace(
        values[0],
        amount=Quantity(milli * _MILLI, values[0].amount.notation),
        time=min(value.time for value in values),
        window_s=max(windows, default=None),
    )


def _from_item(cluster: str, query: MetricQuery, item: Any) -> MetricValue:
    try:
        described, metric = item["describedObject"], item if query.version == "v1beta1" else item["metric"]
        # Metrics APIs may leave it out, and a namespace is in none.
        if described.get("namespace") not in (None, "", query.namespace):
            raise ValueError("its object is of another namespace")
        if metric["metricName" if query.version == "v1beta1" else "name"] != query.metric:
            raise ValueError("it is another metric")
        return MetricValue(
            _text(described.get("apiVersion", "")),
            _text(described["kind"]),
            _text(described["name"]) or _missing("name"),
            _to_amount(item["value"]),
            (parse_rfc3339(item["timestamp"]) or _missing("timestamp")).astimezone(UTC),
            _to_window(item.get("window" if query.version == "v1beta1" else "windowSeconds")),
            _to_selector(metric.get("selector")),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, ValueError) else "a field is missing or has another type"
        raise ClusterError(f"cluster {cluster} answered with a malformed metric: {reason}") from error


def _to_item(query: MetricQuery, value: MetricValue) -> Object:
    described = {"kind": value.kind, "name": value.name, "apiVersion": value.api_version}
    if query.namespace and query.name:
        described["namespace"] = query.namespace
    selector = {"selector": value.selector} if value.selector is not None else {}
    item: Object = {"describedObject": described}
    if query.version == "v1beta1":
        item |= {"metricName": query.metric, **selector}
    else:
        item["metric"] = {"name": query.metric, **selector}
    item["timestamp"] = to_rfc3339(value.time)
    if value.window_s is not None:
        item["window" if query.version == "v1beta1" else "windowSeconds"] = value.window_s
    return item | {"value": str(value.amount)}


def _missing(field: str) -> Any:
    raise ValueError(f"{field} is missing")


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_LENGTH_MAX:
        raise ValueError(f"{str(value)[:40]!r} is no name")
    return value


def _to_amount(value: Any) -> Quantity:
    amount = parse(value)
    if abs(amount.milli) > INT64_MAX:
        raise ValueError(f"{str(value)[:40]!r} is too large")
    return amount


def _to_window(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= INT64_MAX):
        raise ValueError("its window is no number of seconds")
    found: int | None = value
    return found


def _to_selector(selector: Any) -> Mapping[str, Any] | None:
    """Return a LabelSelector with nothing but its fields: clients in Go cannot read a list with a malformed one."""
    if selector is None:
        return None
    labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    found: dict[str, Any] = {}
    if labels:
        found["matchLabels"] = {_text(key): _text(value) for key, value in labels.items()}
    if expressions:
        found["matchExpressions"] = [
            {
                "key": _text(each["key"]),
                "operator": _text(each["operator"]),
                "values": [_text(value) for value in each.get("values") or ()],
            }
            for each in expressions
        ]
    return found
