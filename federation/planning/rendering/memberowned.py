"""Fields that controllers or the API server of a member change by design, one row each. Pure.

A correction of such a field starts a fight, or is refused for ever. `keep_member_values` makes an applied configuration
agree with them. Where a configuration must say something about the field it takes the live value, and not nothing:
server-side apply sets a field to its default when its only owner leaves it out, and rules of a role, for example, would
be gone for a moment. Writes carry the live object's resourceVersion, so a newer value is never replaced.

A field that is in no template needs no row: it is not sent. Services and replicas are in `retention.py`.
Reference: docs/reference/sync.md.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from federation.api.federatedtype import RetentionRule
from federation.apimachinery import dotpaths
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import (
    API_SERVICES,
    CLUSTER_ROLES,
    CRDS,
    INGRESSES,
    JOBS,
    MUTATING_WEBHOOKS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.planning.federatedobject.finished import kind_of

Value = Callable[[Any, Any], Any]
"""From the template's value and the member's, None for none, the value to send; None leaves the field out."""
Test = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
"""Whether a row applies to a configuration and the member's object."""

_METADATA_SHOWN = ("name", "namespace", "labels", "annotations", "generation")
"""The metadata of a member object that the expressions of rules get."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_PARTIAL_ADMISSION = "kueue.x-k8s.io/job-min-parallelism"
_INJECTION = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
)


def _always(_wanted: Mapping[str, Any], _live: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """A field of a kind, the value to send, and when the row applies.

    In the path `[]` stands for each item of a list by its name. A template without the field does not get it, unless
    `is_added`.
    """

    path: str
    value: Value
    applies: Test = _always
    is_added: bool = False


def _members(wanted: Any, live: Any) -> Any:
    """Return the member's value once it has one."""
    return wanted if live in (None, "", [], {}) else live


def _members_for_default(wanted: Any, live: Any) -> Any:
    """Return the member's value if the template has the empty default."""
    return wanted or _members(wanted, live)


def _members_if_absent(wanted: Any, live: Any) -> Any:
    """Return the member's value if the template has none: its own default, which cannot or must not be removed."""
    return live if wanted is None else wanted


def _larger(wanted: Any, live: Any) -> Any:
    """Return the larger quantity: the field can only grow, and somebody in the member grows it."""
    try:
        return live if live is not None and parse(live).nanos > parse(wanted).nanos else wanted
    except (ValueError, TypeError):
        return wanted


def _with_added(wanted: Any, live: Any) -> Any:
    """Return the template's tolerations and those of the member: an API server refuses to remove one from a Pod."""
    if not isinstance(wanted, list) or not isinstance(live, list):
        return wanted
    named = [_without_seconds(item) for item in wanted]
    return [*wanted, *(item for item in live if _without_seconds(item) not in named)]


def _without_seconds(toleration: Any) -> Any:
    if not isinstance(toleration, Mapping):
        return toleration
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _superset(wanted: Any, live: Any) -> Any:
    """Return the member's list if it has everything of the template's: a queue adds what a flavor needs."""
    is_superset = isinstance(wanted, list) and isinstance(live, list) and all(item in live for item in wanted)
    return live if is_superset else wanted


def _remaining(wanted: Any, live: Any) -> Any:
    """Return the scheduling gates that are left: controllers remove them, and an API server refuses new ones."""
    if not isinstance(wanted, list):
        return wanted
    left = _by_name(live)
    return [item for item in wanted if isinstance(item, Mapping) and item.get("name") in left] or None


def _resources(_wanted: Any, live: Any) -> Any:
    """Return the member's resources of a container, which autoscalers change in place."""
    return live or {}


def _secrets(wanted: Any, live: Any) -> Any:
    """Leave an empty list out where a controller has added its tokens."""
    return None if not wanted and live else wanted


def _bundle(wanted: Any, live: Any) -> Any:
    """Return the injected certificates if the template has an empty placeholder, which some manifests need."""
    return _members(wanted, live) if _is_blank(wanted) else wanted


def _is_blank(bundle: Any) -> bool:
    try:
        return isinstance(bundle, str) and not base64.b64decode(bundle).strip()
    except (binascii.Error, ValueError):
        return False


def is_aggregated(role: Mapping[str, Any]) -> bool:
    """Return whether a controller fills the rules of a ClusterRole."""
    return bool(role.get("aggregationRule"))


def _is_aggregated(wanted: Mapping[str, Any], _live: Mapping[str, Any]) -> bool:
    return is_aggregated(wanted)


def _is_injected(wanted: Mapping[str, Any], _live: Mapping[str, Any]) -> bool:
    return any(_metadata(wanted, "annotations").get(key) for key in _INJECTION)


def _is_completed_by_operator(wanted: Mapping[str, Any], _live: Mapping[str, Any]) -> bool:
    """Return whether an operator in the member writes what its webhooks match: the manifest has no rules."""
    webhooks = wanted.get("webhooks")
    return isinstance(webhooks, list) and any(isinstance(each, Mapping) and not each.get("rules") for each in webhooks)


def _is_queued(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    # A queue of the member may give objects without a label its default one.
    return any(_metadata(obj, "labels").get(QUEUE_LABEL) for obj in (wanted, live))


def _is_queued_job(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    return _is_queued(wanted, live) and kind_of(wanted) != ("batch", "CronJob")


def _is_admitted_in_part(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    return _is_queued(wanted, live) and bool(_metadata(wanted, "annotations").get(_PARTIAL_ADMISSION))


def _is_generated(wanted: Mapping[str, Any], _live: Mapping[str, Any]) -> bool:
    """Return whether the Job's selector and its label are those that an API server generates."""
    return dotpaths.value_at(wanted, "spec.manualSelector") is not True


def _metadata(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = dotpaths.get(obj, ("metadata", name))
    return found if isinstance(found, Mapping) else {}


def _by_name(items: Any) -> dict[str, Mapping[str, Any]]:
    named = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    return {item["name"]: item for item in named if isinstance(item.get("name"), str)}


def _bundles(path: str) -> tuple[Row, ...]:
    return (Row(path, _members, _is_injected), Row(path, _bundle))


_WEBHOOKS = (
    *_bundles("webhooks[].clientConfig.caBundle"),
    Row("webhooks[].namespaceSelector", _members_for_default, _is_completed_by_operator),
    Row("webhooks[].objectSelector", _members_for_default, _is_completed_by_operator),
)

ROWS: Mapping[Resource, tuple[Row, ...]] = {
    API_SERVICES: _bundles("spec.caBundle"),
    CLUSTER_ROLES: (Row("rules", _members, _is_aggregated, is_added=True),),
    CRDS: _bundles("spec.conversion.webhook.clientConfig.caBundle"),
    INGRESSES: (Row("spec.ingressClassName", _members_if_absent, is_added=True),),
    JOBS: (
        Row("spec.selector", _members, _is_generated),
        Row("spec.template.metadata.labels", _members, _is_generated),
        Row("spec.parallelism", _members, _is_admitted_in_part),
        Row("spec.template.spec.tolerations", _superset, _is_queued),
    ),
    MUTATING_WEBHOOKS: _WEBHOOKS,
    PERSISTENT_VOLUME_CLAIMS: (
        Row("spec.volumeName", _members),
        Row("spec.storageClassName", _members_if_absent, is_added=True),
        Row("spec.resources.requests.storage", _larger),
    ),
    PERSISTENT_VOLUMES: (
        Row("spec.claimRef", _members),
        Row("spec.capacity.storage", _larger),
    ),
    PODS: (
        Row("spec.containers[].resources", _resources),
        Row("spec.initContainers[].resources", _resources),
        Row("spec.tolerations", _with_added),
        Row("spec.imagePullSecrets", _members_if_absent, is_added=True),
        Row("spec.priorityClassName", _members_if_absent, is_added=True),
        Row("spec.serviceAccount", _members_if_absent, is_added=True),
        Row("spec.serviceAccountName", _members_if_absent, is_added=True),
        Row("spec.overhead", _members_if_absent, is_added=True),
        Row("spec.schedulingGates", _remaining),
    ),
    SERVICE_ACCOUNTS: (Row("secrets", _secrets),),
    VALIDATING_WEBHOOKS: _WEBHOOKS,
}
"""The rows of one kind each."""
OF_ANY_KIND = (
    Row("spec.suspend", _members, _is_queued_job),
    Row("spec.runPolicy.suspend", _members, _is_queued_job),
)
"""Fields that a queue sets in jobs of all kinds; a CronJob is none."""
_BY_KIND = {(resource.group, resource.kind): rows for resource, rows in ROWS.items()}


def keep_member_values(wanted: Object, live: Mapping[str, Any]) -> Object:
    """Return the configuration to apply over the member's object, with the fields that the member changes by design."""
    for row in (*_BY_KIND.get(kind_of(wanted), ()), *OF_ANY_KIND):
        if row.applies(wanted, live):
            wanted = _with_value(wanted, live, row.path.split("."), row)
    return wanted


def keep_by_rules(wanted: Object, live: Mapping[str, Any], rules: Sequence[RetentionRule]) -> Object:
    """Return the configuration with the values that the rules of its kind choose; RuleError.

    A rule holds while template and member have the field. So one that somebody removes in the member is written again.
    """
    shown: Object | None = None
    for rule in rules:
        value = _members
        if rule.evaluate is not None:
            if shown is None:
                shown = _shown(live)
            value = partial(_evaluated, rule.evaluate, shown)
        wanted = _with_value(wanted, live, list(rule.path), Row("", value))
    return wanted


def _shown(live: Mapping[str, Any]) -> Object:
    metadata = {key: value for key, value in live["metadata"].items() if key in _METADATA_SHOWN}
    return {**{key: live.get(key) for key in ("apiVersion", "kind")}, "metadata": metadata} | {
        key: held if isinstance(held := live.get(key), Mapping) else {} for key in ("spec", "status")
    }


def _evaluated(evaluate: Callable[[Mapping[str, Any]], Any], shown: Object, wanted: Any, live: Any) -> Any:
    """Return the value of an expression: the template's where the member has none."""
    return wanted if live is None else evaluate({"template": wanted, "member": live, "object": shown})


def without_member_fields(obj: Object) -> Object:
    """Return an object to deliver without the fields that only a member fills."""
    if kind_of(obj) == ("rbac.authorization.k8s.io", "ClusterRole") and is_aggregated(obj):
        return {key: value for key, value in obj.items() if key != "rules"}
    return obj


def without_assumed_values(obj: Object) -> Object:
    """Return an object to deliver without values that Kubernetes assumes anyway and a member's queue changes.

    Nobody can tell a `suspend: false` that a user wrote from the host's default.
    """
    spec = obj.get("spec")
    if kind_of(obj) != ("batch", "Job") or not isinstance(spec, Mapping) or spec.get("suspend") is not False:
        return obj
    return {**obj, "spec": {key: value for key, value in spec.items() if key != "suspend"}}


def _with_value(wanted: Object, live: Mapping[str, Any], path: list[str], row: Row) -> Object:
    """Return the configuration with a row's value at the path, sharing everything else."""
    key, rest = path[0].removesuffix("[]"), path[1:]
    if not rest:
        return _with_last(wanted, live, key, row)
    inner, held = wanted.get(key), live.get(key)
    if path[0].endswith("[]"):
        return {**wanted, key: _with_items(inner, _by_name(held), rest, row)} if isinstance(inner, list) else wanted
    if not isinstance(inner, dict) or not isinstance(held, Mapping):
        return wanted
    changed = _with_value(inner, held, rest, row)
    return wanted if changed is inner else {**wanted, key: changed}


def _with_items(items: list[Any], live: Mapping[str, Mapping[str, Any]], path: list[str], row: Row) -> list[Any]:
    return [
        _with_value(item, live[item["name"]], path, row)
        if isinstance(item, dict) and item.get("name") in live
        else item
        for item in items
    ]


def _with_last(wanted: Object, live: Mapping[str, Any], key: str, row: Row) -> Object:
    if key not in wanted and not (row.is_added and live.get(key)):
        return wanted
    value = row.value(wanted.get(key), live.get(key))
    if value is None:
        return {name: other for name, other in wanted.items() if name != key}
    return wanted if is_json_equal(value, wanted.get(key)) else {**wanted, key: value}
