"""Findings about objects that act on an API server: where they act, and where they are expected to and do not. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.amounts import first_of
from federation.apimachinery.effect import Effect
from federation.apimachinery.finalizers import has_finalizer
from federation.apimachinery.resources import API_SERVICES, Object, Resource
from federation.planning.diagnosis.level import Level
from federation.planning.federatedobject.hosteffect import effect_on_host, has_effect, is_servers_own, webhooks_of

Configurations = Mapping[Resource, Sequence[Object]]
_SELECT = "select it with a ClusterPropagationPolicy (docs/operators.md), or delete it"
_SHOWN_MAX = 5


def diagnose_configurations(stored: Configurations) -> Iterator[tuple[Level, str, str]]:
    """Yield level, text and remedy of what is wrong, and one line about what acts in members only."""
    found = [
        (resource, obj)
        for resource, objects in stored.items()
        for obj in objects
        if not is_servers_own(resource.group, resource.kind, obj)
    ]
    is_own_host = not any(obj["metadata"]["name"] == names.HOST_WEBHOOKS for each in stored.values() for obj in each)
    elsewhere = []
    for resource, obj in found:
        title, is_delivered = f"{resource.kind} {obj['metadata']['name']}", _is_delivered(obj)
        if not is_own_host:
            if is_delivered:
                remedy = "docs/operators.md#on-an-existing-host"
                yield Level.WARNING, f"{title} acts on the host, too: the host is another API server", remedy
            continue
        effect = effect_on_host(resource, obj, is_selected=is_delivered)
        if is_delivered and effect is Effect.NONE:
            elsewhere.append(title)
        yield from _problems(resource, obj, title, effect, is_delivered=is_delivered)
    if elsewhere:
        yield Level.OK, f"in members only: {first_of(sorted(elsewhere), _SHOWN_MAX)}", ""


def _problems(
    resource: Resource, obj: Object, title: str, effect: Effect, *, is_delivered: bool
) -> Iterator[tuple[Level, str, str]]:
    if not is_delivered and not has_effect(resource, obj, effect):
        yield Level.WARNING, f"{title} acts nowhere: not on the host, and no policy delivers it", _SELECT
    elif effect is Effect.ALL and (
        unreachable := [name for name, each in webhooks_of(resource, obj) if "service" in each]
    ):
        text = (
            f"{title}: the host cannot reach the service of webhook {unreachable[0]}, and refuses what needs its answer"
        )
        yield Level.ERROR, text, f'set the label {names.ACTS_ON_HOST}: "false", or give clientConfig.url'
    elif resource == API_SERVICES and effect is not Effect.NONE:
        available = conditions.find((obj.get("status") or {}).get("conditions"), "Available") or {}
        if available.get("status") == "False":
            yield Level.WARNING, f"{title} has no server on the host ({available.get('reason')})", _SELECT


def _is_delivered(obj: Mapping[str, Any]) -> bool:
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    return names.CLUSTER_PROPAGATION_POLICY_LABEL in labels or has_finalizer(dict(obj), names.FEDERATE_FINALIZER)
