"""Validate HorizontalPodAutoscalers in autoscaling/v2, the stored version; v1 objects are converted before.

The texts are those of kube-apiserver. Scaling to zero needs a feature gate that is off, so `minReplicas` is at least 1.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, not_supported, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.quantityvalidation import validate_quantity

_WINDOW_S_MAX: Final = 3600
_PERIOD_S_MAX: Final = 1800
_TARGETS: Final = ("AverageValue", "Utilization", "Value")
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_NOT_EMPTY: Final = "must populate information for the given metric source"
_ONE_SOURCE: Final = "must populate the given metric source only"
Fields = Mapping[str, Any]


_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


def validate_autoscaler(obj: Object, old: Object | None = None) -> Causes:
    """Validate a HorizontalPodAutoscaler with defaults; the apiVersion of an unchanged target may be anything."""
    spec = obj.get("spec") or {}
    minimum, maximum = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    causes: Causes = []
    if minimum is not None and minimum < 1:
        causes.append(invalid("spec.minReplicas", minimum, "must be greater than or equal to 1"))
    if maximum == 0:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif maximum < 0:
        causes.append(invalid("spec.maxReplicas", maximum, "must be greater than or equal to 1"))
    if minimum is not None and maximum < minimum:
        causes.append(invalid("spec.maxReplicas", maximum, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    causes += _validate_names(target, "spec.scaleTargetRef")
    if old is None or _kind_of(target) != _kind_of((old.get("spec") or {}).get("scaleTargetRef") or {}):
        may_be_core = target.get("kind") == "ReplicationController"
        causes += _validate_version(target, "spec.scaleTargetRef", may_be_core=may_be_core)
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        causes += _validate_metric(metric, f"spec.metrics[{index}]")
    if minimum == 0 and not {"External", "Object"} & {metric.get("type") for metric in metrics}:
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        causes.append(forbidden("spec.metrics", text))
    for direction, rules in (spec.get("behavior") or {}).items():
        causes += _validate_rules(rules or {}, f"spec.behavior.{direction}")
    return causes


def validate_autoscaler_status(obj: Object) -> Causes:
    """Validate the status of a HorizontalPodAutoscaler."""
    status = obj.get("status") or {}
    return [
        invalid(f"status.{field}", status[field], "must be greater than or equal to 0")
        for field in ("currentReplicas", "desiredReplicas")
        if (status.get(field) or 0) < 0
    ]


def _kind_of(reference: Fields) -> tuple[str, str]:
    return reference.get("apiVersion") or "", reference.get("kind") or ""


def _validate_names(reference: Fields, field: str) -> Causes:
    causes: Causes = []
    for name in ("kind", "name"):
        if value := reference.get(name):
            causes += [invalid(f"{field}.{name}", value, text) for text in nameformats.path_segment(value)]
        else:
            causes.append(required(f"{field}.{name}"))
    return causes


def _validate_version(reference: Fields, field: str, *, may_be_core: bool) -> Causes:
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        return [invalid(f"{field}.apiVersion", version, f"unexpected GroupVersion string: {version}")]
    if not version.partition("/")[1] and not may_be_core:
        return [invalid(f"{field}.apiVersion", version, "apiVersion must specify API group")]
    return []


def _validate_metric(metric: Fields, field: str) -> Causes:
    kind = metric.get("type") or ""
    causes: Causes = [] if kind else [required(f"{field}.type", "must specify a metric source type")]
    present = [name for name in _SOURCES if metric.get(name) is not None]
    if present:
        causes += _SOURCES[present[0]](metric[present[0]], f"{field}.{present[0]}")
    expected = f"{kind[:1].lower()}{kind[1:]}"
    if expected not in _SOURCES or not kind[:1].isupper():
        kinds = [f"{name[:1].upper()}{name[1:]}" for name in _SOURCES]
        causes.append(not_supported(f"{field}.type", kind, kinds))
    elif expected not in present:
        causes.append(required(f"{field}.{expected}", _NOT_EMPTY))
    if len(present) != 1:
        causes += [forbidden(f"{field}.{name}", _ONE_SOURCE) for name in present if name != expected]
    return causes


def _validate_object(source: Fields, field: str) -> Causes:
    target = source.get("target") or {}
    described = source.get("describedObject") or {}
    causes = _validate_names(described, f"{field}.describedObject")
    causes += _validate_version(described, f"{field}.describedObject", may_be_core=True)
    causes += _validate_identifier(source, field) + _validate_target(target, f"{field}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        causes.append(required(f"{field}.target.averageValue", "must set either a target value or averageValue"))
    return causes


def _validate_external(source: Fields, field: str) -> Causes:
    target = source.get("target") or {}
    causes = _validate_identifier(source, field) + _validate_target(target, f"{field}.target")
    return causes + _validate_one_of(
        target, f"{field}.target", value="a target value for metric", averageValue="a per-pod target"
    )


def _validate_pods(source: Fields, field: str) -> Causes:
    target = source.get("target") or {}
    causes = _validate_identifier(source, field) + _validate_target(target, f"{field}.target")
    if target.get("averageValue") is None:
        causes.append(required(f"{field}.target.averageValue", "must specify a positive target averageValue"))
    return causes


def _validate_resource(source: Fields, field: str) -> Causes:
    target = source.get("target") or {}
    causes: Causes = [] if source.get("name") else [required(f"{field}.name", "must specify a resource name")]
    causes += _validate_target(target, f"{field}.target")
    return causes + _validate_one_of(
        target, f"{field}.target", averageValue="a target raw value", averageUtilization="a target utilization"
    )


def _validate_one_of(target: Fields, field: str, **texts: str) -> Causes:
    """Require exactly one of two fields, given with their texts: the second if both are absent."""
    (first, first_text), (second, second_text) = texts.items()
    present = [name for name in texts if target.get(name) is not None]
    if not present:
        return [required(f"{field}.{second}", f"must set either {first_text} or {second_text}")]
    if len(present) == len(texts):
        return [forbidden(f"{field}.{first}", f"may not set both {first_text} and {second_text}")]
    return []


def _validate_container_resource(source: Fields, field: str) -> Causes:
    container = source.get("container") or ""
    problems = nameformats.dns1123_label(container) if container else []
    causes = [invalid(f"{field}.container", container, text) for text in problems]
    if not container:
        causes.append(required(f"{field}.container", "must specify a container"))
    name = source.get("name") or ""
    if name and "/" not in name:
        causes += [invalid(f"{field}.name", name, text) for text in nameformats.qualified_name(name)]
        if name not in _CONTAINER_RESOURCES and not name.startswith("hugepages-"):
            causes.append(invalid(f"{field}.name", name, "must be a standard resource for containers"))
    return causes + _validate_resource(source, field)


_SOURCES: Final[Mapping[str, Callable[[Fields, str], Causes]]] = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container_resource,
}


def _validate_identifier(source: Fields, field: str) -> Causes:
    name = (source.get("metric") or {}).get("name") or ""
    if not name:
        return [required(f"{field}.metric.name", "must specify a metric name")]
    return [invalid(f"{field}.metric.name", name, text) for text in nameformats.path_segment(name)]


def _validate_target(target: Fields, field: str) -> Causes:
    kind, share = target.get("type") or "", target.get("averageUtilization")
    causes: Causes = [] if kind else [required(f"{field}.type", "must specify a metric target type")]
    if kind not in _TARGETS:
        causes.append(invalid(f"{field}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        value = target.get(name)
        if value is None:
            continue
        if not validate_quantity(value, f"{field}.{name}") and quantities.parse(value).nanos > 0:
            continue
        causes.append(invalid(f"{field}.{name}", value, "must be positive"))
    if share is not None and share < 1:
        causes.append(invalid(f"{field}.averageUtilization", share, "must be greater than 0"))
    return causes


def _validate_rules(rules: Fields, field: str) -> Causes:
    window_s, select, tolerance = (rules.get(f) for f in ("stabilizationWindowSeconds", "selectPolicy", "tolerance"))
    causes: Causes = []
    if window_s is not None and window_s < 0:
        text = "must be greater than or equal to zero"
        causes.append(invalid(f"{field}.stabilizationWindowSeconds", window_s, text))
    if window_s is not None and window_s > _WINDOW_S_MAX:
        text = f"must be less than or equal to {_WINDOW_S_MAX}"
        causes.append(invalid(f"{field}.stabilizationWindowSeconds", window_s, text))
    if select is not None and select not in _SELECT_POLICIES:
        causes.append(not_supported(f"{field}.selectPolicy", select, _SELECT_POLICIES))
    policies = rules.get("policies") or []
    if not policies:
        causes.append(required(f"{field}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        causes += _validate_policy(policy, f"{field}.policies[{index}]")
    if tolerance is not None:
        causes += validate_quantity(tolerance, f"{field}.tolerance")
    return causes


def _validate_policy(policy: Fields, field: str) -> Causes:
    causes: Causes = []
    if policy.get("type") not in {"Percent", "Pods"}:
        causes.append(not_supported(f"{field}.type", policy.get("type") or "", ("Percent", "Pods")))
    for name in ("value", "periodSeconds"):
        if (policy.get(name) or 0) <= 0:
            causes.append(invalid(f"{field}.{name}", policy.get(name) or 0, "must be greater than zero"))
    if (period_s := policy.get("periodSeconds") or 0) > _PERIOD_S_MAX:
        text = f"must be less than or equal to {_PERIOD_S_MAX}"
        causes.append(invalid(f"{field}.periodSeconds", period_s, text))
    return causes
