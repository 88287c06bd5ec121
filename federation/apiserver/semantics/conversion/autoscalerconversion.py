"""Convert HorizontalPodAutoscalers between autoscaling/v2, the stored version, and autoscaling/v1.

v1 has fields for one target only, the use of CPU. Everything else of a v2 object is in annotations of its v1 form, in
the JSON that kube-apiserver writes there, and comes back from them. An annotation that cannot be read is dropped.
`AutoscalerConverter` has the methods of `CRConverter` (`conversion.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from federation.apimachinery import quantity as quantities
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.conversion.conversion import WebhookConverter
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.schema.builtin import compile_definition
from federation.apiserver.semantics.schema.defaulting import prune
from federation.apiserver.semantics.schema.validation import decode_errors
from federation.apiserver.store.interface import Body

_KIND: Final = "HorizontalPodAutoscaler"
_V1, _V2 = "autoscaling/v1", "autoscaling/v2"
_V1_HEAD: Final = encoding.encode_head(_V1, _KIND)
_V2_HEAD: Final = encoding.encode_head(_V2, _KIND)
_ALPHA: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_ALPHA}metrics", f"{_ALPHA}behavior"
_STATUSES, _CONDITIONS = f"{_ALPHA}current-metrics", f"{_ALPHA}conditions"
_ANNOTATIONS: Final = frozenset(
    {_METRICS, _BEHAVIOR, _STATUSES, _CONDITIONS, f"{_ALPHA}scale-down-tolerance", f"{_ALPHA}scale-up-tolerance"}
)
_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_DEFAULT_UTILIZATION: Final = 80
_SCHEMAS: Final = "io.k8s.api.autoscaling.v2."
Fields = dict[str, Any]


class AutoscalerConverter:
    """Converts stored autoscalers to autoscaling/v1 and back."""

    storage_version: Final = "v2"

    def __init__(self, default: Callable[[Object], None]) -> None:
        """`default` fills v2 objects in place: v1 has no defaults for the behavior in its annotation."""
        self._default = default

    def is_current(self, head: bytes, value: bytes) -> bool:
        """Return True if stored bytes are in autoscaling/v1, which does not happen."""
        return value.startswith(head)

    async def to_version(self, values: Sequence[bytes], version: str, converter: WebhookConverter) -> list[bytes]:
        """Return stored bytes as autoscaling/v1."""
        del version, converter
        return [
            encoding.to_bytes(encoding.encode(_V1_HEAD, to_v1(obj)), int(obj["metadata"]["resourceVersion"]))
            for obj in map(encoding.decode, values)
        ]

    async def to_storage(self, obj: Object, converter: WebhookConverter) -> Body:
        """Return an autoscaling/v1 object in its stored form."""
        del converter
        return encoding.encode(_V2_HEAD, self.convert(obj, "v2"))

    def convert(self, obj: Object, version: str) -> Object:
        """Return an object of the other version in `version`, "v1" or "v2"."""
        if version == "v1":
            return {**to_v1(obj), "apiVersion": _V1, "kind": _KIND}
        converted = to_v2(obj)
        self._default(converted)
        return {**converted, "apiVersion": _V2, "kind": _KIND}


def without_status_annotations(obj: Object) -> Object:
    """Return a v1 object without the annotations that hold parts of its status."""
    return _with_annotations(obj, {_STATUSES: None, _CONDITIONS: None})


def to_v1(obj: Object) -> Object:
    """Return a v2 object as v1; the result shares values."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, statuses = spec.get("metrics") or [], status.get("currentMetrics") or []
    targets = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu_utilization(metric)]
    others = [_metric_to_v1(metric) for metric in metrics if not _is_cpu_utilization(metric)]
    used = [metric["resource"]["current"] for metric in statuses if _is_cpu(metric) and "current" in metric["resource"]]
    shares = [current["averageUtilization"] for current in used if current.get("averageUtilization") is not None]
    annotations: dict[str, Any] = dict.fromkeys(_ANNOTATIONS)
    if others:
        annotations[_METRICS] = _to_text(others)
    if spec.get("behavior") is not None:
        annotations[_BEHAVIOR] = _to_text(_behavior_to_internal(spec["behavior"]))
    if statuses:
        annotations[_STATUSES] = _to_text([_status_to_v1(found) for found in statuses])
    if conditions := status.get("conditions"):
        annotations[_CONDITIONS] = _to_text([_condition(found) for found in conditions])
    new_spec = {name: spec[name] for name in _SPEC if name in spec}
    if targets:
        new_spec["targetCPUUtilizationPercentage"] = targets[0]
    new_status = {name: status[name] for name in _STATUS if name in status}
    new_status |= {name: new_status.get(name) or 0 for name in ("currentReplicas", "desiredReplicas")}
    if shares:
        new_status["currentCPUUtilizationPercentage"] = shares[-1]
    return _with_annotations({**obj, "apiVersion": _V1, "spec": new_spec, "status": new_status}, annotations)


def to_v2(obj: Object) -> Object:
    """Return a v1 object as v2, with the default target if it has none; the result shares values."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    new_spec = {name: spec[name] for name in _SPEC if name in spec}
    target = spec.get("targetCPUUtilizationPercentage")
    metrics = [] if target is None else [_cpu_utilization(target)]
    metrics = _read(annotations, _METRICS, _metric_from_v1, "MetricSpec") + metrics
    new_spec["metrics"] = metrics or [_cpu_utilization(_DEFAULT_UTILIZATION)]
    if behavior := _read_behavior(annotations):
        new_spec["behavior"] = behavior
    new_status: Fields = {name: status[name] for name in _STATUS if name in status}
    statuses = _read(annotations, _STATUSES, _status_from_v1, "MetricStatus")
    share = status.get("currentCPUUtilizationPercentage")
    if not statuses and share is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": share}}
        statuses = [{"type": "Resource", "resource": resource}]
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)
    new_status["currentMetrics"] = statuses or None
    if conditions := _read(annotations, _CONDITIONS, dict, "HorizontalPodAutoscalerCondition"):
        new_status["conditions"] = conditions
    new = {**obj, "apiVersion": _V2, "spec": new_spec, "status": new_status}
    return _with_annotations(new, dict.fromkeys(_ANNOTATIONS))


def from_v2beta1(obj: Object) -> Object:
    """Return an autoscaling/v2beta1 object without status as v2; AttributeError or TypeError if it is malformed.

    Kubernetes 1.25 removed v2beta1. Its metrics have the form of those in the annotation of v1.
    """
    spec = obj.get("spec") or {}
    new_spec = {name: spec[name] for name in _SPEC if name in spec}
    if metrics := spec.get("metrics"):
        new_spec["metrics"] = [_metric_from_v1(metric) for metric in metrics]
    new = {**obj, "apiVersion": _V2, "spec": new_spec}
    new.pop("status", None)
    return new


def _with_annotations(obj: Object, wanted: Mapping[str, str | None]) -> Object:
    """Return the object with these annotations set, or removed where the value is None."""
    metadata = dict(obj.get("metadata") or {})
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in wanted}
    annotations |= {name: text for name, text in wanted.items() if text is not None}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}


def _is_cpu(metric: Fields) -> bool:
    return metric.get("type") == "Resource" and (metric.get("resource") or {}).get("name") == "cpu"


def _is_cpu_utilization(metric: Fields) -> bool:
    return _is_cpu(metric) and (metric["resource"].get("target") or {}).get("averageUtilization") is not None


def _cpu_utilization(percent: int) -> Fields:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _present(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def _reference(reference: Fields) -> Fields:
    """Return a reference with its fields in the order of the Go type."""
    found = {"kind": reference.get("kind") or "", "name": reference.get("name") or ""}
    return found | _present(apiVersion=reference.get("apiVersion"))


def _metric_to_v1(metric: Fields) -> Fields:
    kind = metric.get("type") or ""
    name = _source_name(kind)
    source = metric.get(name)
    return {"type": kind} if source is None else {"type": kind, name: _source_to_v1(name, source)}


def _source_to_v1(name: str, source: Fields) -> Fields:
    target, metric = source.get("target") or {}, source.get("metric") or {}
    value, average, share = (target.get(field) for field in ("value", "averageValue", "averageUtilization"))
    metric_name, selector = metric.get("name") or "", metric.get("selector")
    match name:
        case "object":
            shared = {"target": _reference(source.get("describedObject") or {}), "metricName": metric_name}
            return {**shared, "targetValue": value or "0", **_present(selector=selector, averageValue=average)}
        case "pods":
            return {"metricName": metric_name, "targetAverageValue": average or "0", **_present(selector=selector)}
        case "external":
            others = _present(metricSelector=selector, targetValue=value, targetAverageValue=average)
            return {"metricName": metric_name, **others}
        case _:
            found = {"name": source.get("name") or ""}
            found |= _present(targetAverageUtilization=share, targetAverageValue=average)
            return found | ({"container": source.get("container") or ""} if name == "containerResource" else {})


def _status_to_v1(status: Fields) -> Fields:
    kind = status.get("type") or ""
    name = _source_name(kind)
    source = status.get(name)
    if source is None:
        return {"type": kind}
    current, metric = source.get("current") or {}, source.get("metric") or {}
    value, average, share = (current.get(field) for field in ("value", "averageValue", "averageUtilization"))
    metric_name, selector = metric.get("name") or "", metric.get("selector")
    match name:
        case "object":
            shared = {"target": _reference(source.get("describedObject") or {}), "metricName": metric_name}
            found = {**shared, "currentValue": value or "0", **_present(selector=selector, averageValue=average)}
        case "pods":
            found = {"metricName": metric_name, "currentAverageValue": average or "0", **_present(selector=selector)}
        case "external":
            found = {"metricName": metric_name, **_present(metricSelector=selector), "currentValue": value or "0"}
            found |= _present(currentAverageValue=average)
        case _:
            found = {"name": source.get("name") or "", **_present(currentAverageUtilization=share)}
            found["currentAverageValue"] = average or "0"
            if name == "containerResource":
                found["container"] = source.get("container") or ""
    return {"type": kind, name: found}


def _metric_from_v1(metric: Fields) -> Fields:
    kind = metric.get("type") or ""
    name = _source_name(kind)
    source = metric.get(name)
    if source is None:
        return {"type": kind}
    value, average = source.get("targetValue"), source.get("targetAverageValue")
    share, identifier = source.get("targetAverageUtilization"), {"name": source.get("metricName") or ""}
    selector = source.get("metricSelector" if name == "external" else "selector")
    identifier |= _present(selector=selector)
    match name:
        case "object":
            average = source.get("averageValue")
            if average is not None and not quantities.parse(value or "0").nanos:
                value = None
            target = _present(value=value, averageValue=average)
            target["type"] = "Value" if average is None else "AverageValue"
            new = {"describedObject": source.get("target") or {}, "target": target, "metric": identifier}
        case "pods":
            new = {"metric": identifier, "target": {"type": "AverageValue", "averageValue": average or "0"}}
        case "external":
            kind_of_target = "AverageValue" if value is None else "Value"
            new = {
                "metric": identifier,
                "target": {"type": kind_of_target, **_present(value=value, averageValue=average)},
            }
        case _:
            target = {"type": "AverageValue" if share is None else "Utilization"}
            target |= _present(averageValue=average, averageUtilization=share)
            new = {"name": source.get("name") or "", "target": target, **_present(container=source.get("container"))}
    return {"type": kind, name: new}


def _status_from_v1(status: Fields) -> Fields:
    kind = status.get("type") or ""
    name = _source_name(kind)
    source = status.get(name)
    if source is None:
        return {"type": kind}
    identifier = {"name": source.get("metricName") or ""}
    identifier |= _present(selector=source.get("metricSelector" if name == "external" else "selector"))
    match name:
        case "object":
            current = {"value": source.get("currentValue"), "averageValue": source.get("averageValue")}
            new: Fields = {"describedObject": source.get("target") or {}, "metric": identifier}
        case "pods":
            current, new = {"averageValue": source.get("currentAverageValue")}, {"metric": identifier}
        case "external":
            current = {"value": source.get("currentValue"), "averageValue": source.get("currentAverageValue")}
            new = {"metric": identifier}
        case _:
            share, average = source.get("currentAverageUtilization"), source.get("currentAverageValue")
            current = {"averageUtilization": share, "averageValue": average}
            new = {"name": source.get("name") or "", **_present(container=source.get("container"))}
    return {"type": kind, name: {**new, "current": _present(**current)}}


def _source_name(kind: str) -> str:
    """Return the field of a metric's type: `containerResource` for ContainerResource."""
    return f"{kind[:1].lower()}{kind[1:]}"


def _condition(condition: Fields) -> Fields:
    fixed = {name: condition.get(name) for name in ("type", "status", "lastTransitionTime")}
    return fixed | {name: condition[name] for name in ("reason", "message") if condition.get(name)}


def _behavior_to_internal(behavior: Fields) -> Fields:
    """Return the JSON of the internal Go type, which has no JSON names: that of its fields is what old objects hold."""
    return {
        field: _rules_to_internal(behavior[name]) if behavior.get(name) is not None else None
        for field, name in (("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown"))
    }


def _rules_to_internal(rules: Fields) -> Fields:
    policies = [
        {"Type": found.get("type") or "", "Value": found.get("value") or 0, "PeriodSeconds": found.get("periodSeconds")}
        for found in rules.get("policies") or ()
    ]
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies or None,
        "Tolerance": rules.get("tolerance"),
    }


def _read_behavior(annotations: Mapping[str, str]) -> Fields:
    """Return the behavior in an annotation, {} if there is none. As in Go, the case of field names does not matter."""
    found = _lower_names(_parse(annotations.get(_BEHAVIOR)))
    if not isinstance(found, dict) or _has_wrong_types("HorizontalPodAutoscalerBehavior", found):
        return {}
    return found


def _lower_names(value: Any) -> Any:
    if isinstance(value, dict):
        names = {name.lower(): name for name in _BEHAVIOR_FIELDS}
        lowered = {names.get(key.lower(), key): _lower_names(inner) for key, inner in value.items()}
        return {key: inner for key, inner in lowered.items() if inner is not None}
    return [_lower_names(item) for item in value] if isinstance(value, list) else value


_BEHAVIOR_FIELDS: Final = (
    "scaleUp", "scaleDown", "stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance", "type", "value",
    "periodSeconds",
)  # fmt: skip


def _read(
    annotations: Mapping[str, str], name: str, convert: Callable[[Fields], Fields], definition: str
) -> list[Fields]:
    """Return the converted list in an annotation, [] if it is absent or not of the right types."""
    found = _parse(annotations.get(name))
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return []
    try:
        converted = [convert(item) for item in found]
    except (AttributeError, TypeError, ValueError):
        return []
    return [] if any(_has_wrong_types(definition, item) for item in converted) else converted


def _has_wrong_types(definition: str, value: Fields) -> bool:
    """Remove unknown fields and return True if a field has a type that Go's decoder refuses."""
    schema = compile_definition(f"{_SCHEMAS}{definition}")
    prune(schema, value)
    return bool(decode_errors(schema, value))


def _parse(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _to_text(value: Any) -> str:
    return orjson.dumps(value).decode()
