"""Which plugins there are: name → class, found through entry points.

Built-in plugins and a stranger's come the same way: a distribution lists `NAME = "module:Class"` under the entry point
group `federation.scheduler.plugins`. The core imports no plugin by name (STYLE 5). A `PluginRegistry` is a value: made
once at start, extended with `with_plugin` for plugins that exist by configuration (webhooks). `profile.py` is next.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from federation.base.errors import PluginError
from federation.scheduling.framework.interfaces import Arguments

GROUP = "federation.scheduler.plugins"

Factory = Callable[[Arguments], Any]
"""Makes a plugin from its arguments; raises ValueError or TypeError when they do not fit."""


class PluginRegistry:
    """Name → factory. Looking up a name that is not there is a PluginError that lists what is."""

    def __init__(self, factories: Mapping[str, Factory]) -> None:
        self._factories = dict(factories)

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._factories)

    def with_plugin(self, name: str, factory: Factory) -> "PluginRegistry":
        """Return a registry that has this plugin too, in place of one with the same name."""
        return PluginRegistry({**self._factories, name: factory})

    def make(self, name: str, arguments: Arguments) -> Any:
        """Return a new plugin; PluginError when it is unknown or rejects its arguments."""
        factory = self._factories.get(name)
        if factory is None:
            raise PluginError(f"plugin {name!r} is not registered; known: {', '.join(self.names)}")
        try:
            return factory(arguments)
        except (TypeError, ValueError) as error:
            raise PluginError(f"plugin {name!r} rejects its arguments: {error}") from error


def factory_of(plugin_class: type[Any]) -> Factory:
    """Return how a plugin class is made: `from_args(args)` when it has that, else without arguments."""
    from_args: Factory | None = getattr(plugin_class, "from_args", None)

    def make(arguments: Arguments) -> Any:
        if from_args is not None:
            return from_args(arguments)
        if arguments:
            raise ValueError(f"it takes none, got {', '.join(sorted(arguments))}")
        return plugin_class()

    return make


def load_plugins(entries: Iterable[EntryPoint] | None = None) -> PluginRegistry:
    """Return every installed plugin, or those of `entries`; PluginError when one cannot be imported or comes twice."""
    found = entry_points(group=GROUP) if entries is None else entries
    factories: dict[str, Factory] = {}
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            plugin_class = entry.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(f"plugin {entry.name!r} cannot be loaded from {entry.value}: {error}") from error
        if entry.name in factories:
            raise PluginError(f"plugin {entry.name!r} is installed twice, the second time as {entry.value}")
        factories[entry.name] = factory_of(plugin_class)
    return PluginRegistry(factories)
