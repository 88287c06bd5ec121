"""Karmada's FederatedHPA and CronFederatedHPA as ours: a HorizontalPodAutoscaler on the host, and our CronFederatedHPA.

A FederatedHPA acts on the metrics of all clusters, which is what the label `centralized` asks for. Pure.
"""

from federation.api import names
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.features.convert.rules.fieldreader import FieldReader

_METRICS = {
    "Object": "with target Value the average of the clusters that have the object counts, with AverageValue the sum",
    "External": "is read from the first cluster of the target that answers",
}
"""Types of metrics that another rule than Karmada's may join from several clusters."""
_RULE_TEXTS = ("name", "schedule", "timeZone")
_RULE_NUMBERS = (
    *("targetReplicas", "targetMinReplicas", "targetMaxReplicas"),
    *("successfulHistoryLimit", "failedHistoryLimit"),
)


def to_autoscaler_spec(spec: FieldReader) -> Object:
    """Return the spec of a HorizontalPodAutoscaler; the fields are those of autoscaling/v2."""
    converted: Object = {"scaleTargetRef": _target(spec.child("scaleTargetRef"))}
    for key in ("minReplicas", "maxReplicas"):
        if (number := spec.number(key)) is not None:
            converted[key] = number
    metrics = spec.any("metrics")
    for index, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        kind = metric.get("type") if isinstance(metric, dict) else None
        if kind in _METRICS:
            spec.note(f"metrics[{index}]", _METRICS[kind])
    for key, value in (("metrics", metrics), ("behavior", spec.any("behavior"))):
        if value:
            converted[key] = value
    return converted


def autoscaler_labels() -> dict[str, str]:
    """Return the labels with which the autoscaler acts on the host, also on an existing one."""
    return {names.HPA_MODE: names.HPA_CENTRALIZED}


def to_cron_spec(spec: FieldReader) -> Object:
    """Return the spec of our CronFederatedHPA."""
    return {
        "scaleTargetRef": _target(spec.child("scaleTargetRef")),
        "rules": [_rule(rule) for rule in spec.children("rules")],
    }


def _rule(rule: FieldReader) -> Object:
    converted: Object = {key: value for key in _RULE_TEXTS if (value := rule.text(key))}
    converted |= {key: number for key in _RULE_NUMBERS if (number := rule.number(key)) is not None}
    if rule.flag("suspend"):
        converted["suspend"] = True
    if "timeZone" not in converted:
        rule.note("timeZone", "absent means UTC, and in Karmada the zone of its controller manager")
    return converted


def _target(target: FieldReader) -> Object:
    version, kind = target.text("apiVersion"), target.text("kind")
    if kind == "FederatedHPA":
        version, kind = HORIZONTAL_POD_AUTOSCALERS.api_version, HORIZONTAL_POD_AUTOSCALERS.kind
    return {"apiVersion": version, "kind": kind, "name": target.text("name")}
