"""The plugin registry: plugin factories by name, found through entry points.

Built-in and third-party plugins register in the same way: a distribution lists `NAME = "module:Class"` under the entry
point group `federation.scheduler.plugins`. The core imports no plugin by name. A `PluginRegistry` is immutable;
`with_plugin` returns one with a webhook added. Read `profile.py` next.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from federation.apimachinery.errors import PluginError
from federation.planning.clusters.deviceinventory import Selects
from federation.planning.clusters.devicekinds import Kind
from federation.scheduling.framework.interfaces import Arguments

GROUP = "federation.scheduler.plugins"

Factory = Callable[[Arguments], Any]
"""Creates a plugin from its arguments; raises ValueError or TypeError for invalid ones."""


def _selects_nothing(_text: str, _kind: Kind) -> bool:
    return False


class PluginRegistry:
    """Plugin factories by name. An unknown name is a PluginError that lists the known ones."""

    def __init__(
        self,
        factories: Mapping[str, Factory],
        versions: Mapping[str, str] | None = None,
        selects: Selects = _selects_nothing,
    ) -> None:
        self._factories = dict(factories)
        self.selects = selects
        """Evaluates the selectors of claims for devices."""
        self.versions = dict(versions or {})
        """The version of the distribution of each installed plugin."""

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._factories)

    def with_plugin(self, name: str, factory: Factory) -> "PluginRegistry":
        """Return a registry with this plugin added, or replaced if it has the same name."""
        return PluginRegistry({**self._factories, name: factory}, self.versions, self.selects)

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
    """Return the factory of a plugin class: `from_args` if it has one, else the class without arguments."""
    from_args: Factory | None = getattr(plugin_class, "from_args", None)

    def make(arguments: Arguments) -> Any:
        if from_args is not None:
            return from_args(arguments)
        if arguments:
            raise ValueError(f"it takes none, got {', '.join(sorted(arguments))}")
        return plugin_class()

    return make


def load_plugins(entries: Iterable[EntryPoint] | None = None, *, selects: Selects = _selects_nothing) -> PluginRegistry:
    """Return the installed plugins, or the plugins of `entries`; PluginError for import failures and duplicates."""
    found = list(entry_points(group=GROUP) if entries is None else entries)
    factories: dict[str, Factory] = {}
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            plugin_class = entry.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(f"plugin {entry.name!r} cannot be loaded from {entry.value}: {error}") from error
        if entry.name in factories:
            raise PluginError(f"plugin {entry.name!r} is installed twice, the second time as {entry.value}")
        factories[entry.name] = factory_of(plugin_class)
    versions = {each.name: each.dist.version for each in found if each.dist is not None}
    return PluginRegistry(factories, versions, selects)
