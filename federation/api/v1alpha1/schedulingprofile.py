"""SchedulingProfile: which scheduler plugins run (docs/reference/kinds.md)."""

from enum import StrEnum
from typing import ClassVar

from federation.api.resources import SCHEDULING_PROFILES
from federation.api.v1alpha1.base import AGE, AnyValue, Definition, Kind, Model, NonNegative


class PluginType(StrEnum):
    """How a plugin that is not built in is reached."""

    WEBHOOK = "Webhook"


class Plugin(Model):
    """One plugin."""

    name: str | None = None
    """The name of the plugin; in a list of disabled plugins * means all."""
    type: PluginType | None = None
    """The type of the plugin; absent for built-in plugins."""
    weight: NonNegative | None = None
    """The factor of the plugin's scores, 1 by default. An extension of this project."""
    wait: NonNegative | None = None
    """KubeAdmiral's spelling of weight, which is not used there."""


class PluginSet(Model):
    """Changes of the default plugins of one extension point."""

    disabled: list[Plugin] | None = None
    """Default plugins that do not run."""
    enabled: list[Plugin] | None = None
    """Plugins that run after the default ones."""


class Plugins(Model):
    """Changes of the default plugins by extension point."""

    filter: PluginSet | None = None
    """Plugins that reject clusters."""
    replicas: PluginSet | None = None
    """Plugins that divide replicas. The first one does; enabled ones come first. An extension of this project."""
    score: PluginSet | None = None
    """Plugins that prefer clusters."""
    select: PluginSet | None = None
    """Plugins that choose among the clusters by score."""


class PluginConfig(Model):
    """The arguments of one plugin."""

    args: AnyValue = None
    """The arguments."""
    name: str
    """The name of the plugin."""


class SchedulingProfileSpec(Model):
    """The plugins that run, with their arguments."""

    plugin_config: list[PluginConfig] | None = None
    """The arguments of plugins."""
    plugins: Plugins | None = None
    """Changes of the default plugins."""


class SchedulingProfile(Kind):
    """SchedulingProfile configures the scheduler for the policies that name it."""

    DEFINITION: ClassVar[Definition] = Definition(SCHEDULING_PROFILES, "sp", has_status=False, columns=(AGE,))

    spec: SchedulingProfileSpec
