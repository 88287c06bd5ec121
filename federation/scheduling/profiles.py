"""The scheduling profiles: the default one, and one per SchedulingProfile object.

A profile is merged once and stays the same object until it changes, because the engine keeps its plugin instances. Its
hash covers the configurations of its webhooks: a plugin with another address or other fields counts like an edit of the
profile. Pure; the schedule controller updates it.
"""

from collections.abc import Mapping
from typing import Any

from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, apply_profile, with_packing, with_strategy
from federation.scheduling.framework.types import ReplicasStrategy
from federation.scheduling.policyspec import hash_of


class Profiles:
    """Profiles by name; "" is the default."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}
        self._plugins: dict[str, tuple[str, frozenset[str]]] = {}
        self._plugin_fields: dict[str, frozenset[str]] = {}
        self._hashes: dict[str, str] = {}
        self._variants: dict[tuple[str, ReplicasStrategy, bool], Profile] = {}
        self._store("", DEFAULT_PROFILE)

    def get(self, name: str, strategy: ReplicasStrategy, *, is_queued: bool = False) -> Profile | None:
        """Return the profile for a policy's strategy; None when there is no profile of that name.

        `is_queued` is for objects that have a JobQueue.
        """
        return self._variants.get((name, strategy, is_queued))

    def hash(self, name: str) -> str:
        """Return the hash of the profile object and its webhooks' configurations.

        It is "" for the default profile and for a profile that does not exist.
        """
        return self._hashes.get(name, "")

    def plugin_fields_hash(self, name: str, template: Mapping[str, Any]) -> str:
        """Return the hash of an object's labels and annotations that a profile's webhook plugins get, "" if none do."""
        fields, metadata = self.plugin_fields(name), template.get("metadata") or {}
        parts = [metadata.get(field) or {} for field in ("annotations", "labels") if field in fields]
        return hash_of(parts) if parts else ""

    def plugin_fields(self, name: str) -> frozenset[str]:
        """Return the fields of the object that the profile's webhooks declare (`fields.unit`)."""
        return self._plugin_fields.get(name, frozenset())

    def put(self, source: Mapping[str, Any]) -> None:
        """Add or replace the profile of a SchedulingProfile object."""
        name = str(source["metadata"]["name"])
        self._sources[name] = hash_of(source.get("spec") or {})
        self._store(name, apply_profile(DEFAULT_PROFILE, source))
        self._hash(name)

    def remove(self, name: str) -> None:
        """Remove a profile."""
        self._hashes.pop(name, None)
        self._sources.pop(name, None)
        self._plugin_fields.pop(name, None)
        for strategy in ReplicasStrategy:
            for is_queued in (False, True):
                self._variants.pop((name, strategy, is_queued), None)

    def put_plugin(self, name: str, decisive_hash: str, fields: frozenset[str] = frozenset()) -> None:
        """Record the hash of a webhook's configuration, "" when it is removed, and the fields it declares."""
        self._plugins.pop(name, None)
        if decisive_hash:
            self._plugins[name] = (decisive_hash, fields)
        for profile in self.names_with_plugin(name):
            self._hash(profile)

    def names_with_plugin(self, name: str) -> list[str]:
        """Return the names of the profiles that enable the plugin."""
        return [profile for profile in self._sources if name in self._plugin_names(profile)]

    def _plugin_names(self, name: str) -> frozenset[str]:
        profile = self._variants[name, ReplicasStrategy.SPREAD, False]
        every = (profile.filter, profile.score, profile.select, profile.replicas)
        return frozenset(ref.name for refs in every for ref in refs)

    def _hash(self, name: str) -> None:
        plugins = sorted(self._plugin_names(name) & self._plugins.keys())
        hashes = [[plugin, self._plugins[plugin][0]] for plugin in plugins]
        source = self._sources[name]
        self._hashes[name] = hash_of([source, *hashes]) if plugins else source
        self._plugin_fields[name] = frozenset().union(*(self._plugins[plugin][1] for plugin in plugins))

    def _store(self, name: str, profile: Profile) -> None:
        for strategy in ReplicasStrategy:
            variant = with_strategy(profile, is_binpack=strategy is ReplicasStrategy.BINPACK)
            self._variants[name, strategy, False] = variant
            self._variants[name, strategy, True] = with_packing(variant)
