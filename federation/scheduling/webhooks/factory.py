"""Create webhook plugins from configurations, and the registry with all plugins."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Arguments
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Cluster, ClusterScore, Division, SchedulingUnit, Status, error
from federation.scheduling.webhooks import v1alpha1, v1beta1
from federation.scheduling.webhooks.configuration import V1BETA1, WebhookOptions, compile_webhook, unusable


def compile_for(installed: PluginRegistry, source: Mapping[str, Any]) -> WebhookOptions:
    """Return the compiled configuration; PluginError also when an installed plugin has its name."""
    name = str(source["metadata"]["name"])
    if name in installed.names:
        raise PluginError(f"webhook {name!r}: an installed plugin has this name")
    return compile_webhook(source)


def admit(installed: PluginRegistry, source: Mapping[str, Any]) -> tuple[WebhookOptions | None, str]:
    """Return the options to register for a configuration, and its problem, "" for none.

    An unusable one registers a plugin that fails; one with the name of an installed plugin registers nothing.
    """
    try:
        return compile_for(installed, source), ""
    except PluginError as problem:
        is_taken = str(source["metadata"]["name"]) in installed.names
        return (None if is_taken else unusable(source, str(problem))), str(problem)


def with_webhooks(installed: PluginRegistry, webhooks: Iterable[WebhookOptions]) -> PluginRegistry:
    """Return a registry of the installed plugins and the webhooks."""
    registry = installed
    for options in webhooks:
        registry = registry.with_plugin(options.name, partial(make_webhook, options))
    return registry


def make_webhook(options: WebhookOptions, arguments: Arguments) -> "v1alpha1.Webhook | v1beta1.Webhook | Unusable":
    """Return the plugin; `v1alpha1` ignores the profile's `arguments`."""
    if options.problem:
        return Unusable(options)
    return v1beta1.Webhook(options, arguments) if options.version == V1BETA1 else v1alpha1.Webhook(options)


class Unusable:
    """A plugin that fails at every extension point, because its configuration is unusable."""

    def __init__(self, options: WebhookOptions) -> None:
        self.is_ignorable = options.is_ignorable
        self._failure = error(options.problem)

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Fail."""
        return self._failure

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Fail."""
        return self._failure

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Fail."""
        return self._failure

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Fail."""
        return self._failure
