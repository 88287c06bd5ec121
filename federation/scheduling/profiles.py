"""The scheduling profiles in force: the default one, and one per SchedulingProfile object.

A profile is merged once and handed out as the same object until it changes, because the engine keeps the plugins that
it made for it. Its hash covers the configurations of the webhooks that it runs: a plugin that is asked at another
address or for other things is a reason to decide again, like an edit of the profile. Pure; the schedule controller
feeds it.
"""

from collections.abc import Mapping
from typing import Any

from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, apply_profile, with_strategy
from federation.scheduling.framework.types import ReplicasStrategy
from federation.scheduling.policy import hash_of


class Profiles:
    """Profiles by name; "" is the default."""

    def __init__(self, default: Profile = DEFAULT_PROFILE) -> None:
        self._default = default
        self._sources: dict[str, str] = {}
        self._plugins: dict[str, tuple[str, frozenset[str]]] = {}
        self._told: dict[str, frozenset[str]] = {}
        self._hashes: dict[str, str] = {}
        self._variants: dict[tuple[str, ReplicasStrategy], Profile] = {}
        self._store("", default)

    def get(self, name: str, strategy: ReplicasStrategy) -> Profile | None:
        """Return the profile for a policy's strategy; None when there is no profile of that name."""
        return self._variants.get((name, strategy))

    def hash(self, name: str) -> str:
        """Return the hash of what the profile object and its webhooks' configurations say.

        It is "" for the default profile and for one that does not exist.
        """
        return self._hashes.get(name, "")

    def told(self, name: str) -> frozenset[str]:
        """Return which fields of the object the profile's webhooks asked to be told (`fields.unit`)."""
        return self._told.get(name, frozenset())

    def put(self, source: Mapping[str, Any]) -> None:
        """Add or replace the profile of a SchedulingProfile object."""
        name = str(source["metadata"]["name"])
        self._sources[name] = hash_of(source.get("spec") or {})
        self._store(name, apply_profile(self._default, source))
        self._hash(name)

    def remove(self, name: str) -> None:
        """Forget a profile."""
        self._hashes.pop(name, None)
        self._sources.pop(name, None)
        self._told.pop(name, None)
        for strategy in ReplicasStrategy:
            self._variants.pop((name, strategy), None)

    def put_plugin(self, name: str, decisive_hash: str, told: frozenset[str] = frozenset()) -> None:
        """Note what a webhook's configuration says, by its hash, "" when it is gone, and what it asks to be told."""
        self._plugins.pop(name, None)
        if decisive_hash:
            self._plugins[name] = (decisive_hash, told)
        for profile in self.with_plugin(name):
            self._hash(profile)

    def with_plugin(self, name: str) -> list[str]:
        """Return the names of the profile objects that run the plugin."""
        return [profile for profile in self._sources if name in self._runs(profile)]

    def _runs(self, name: str) -> frozenset[str]:
        profile = self._variants[name, ReplicasStrategy.SPREAD]
        every = (profile.filter, profile.score, profile.select, profile.replicas)
        return frozenset(ref.name for refs in every for ref in refs)

    def _hash(self, name: str) -> None:
        plugins = sorted(self._runs(name) & self._plugins.keys())
        hashes = [[plugin, self._plugins[plugin][0]] for plugin in plugins]
        source = self._sources[name]
        self._hashes[name] = hash_of([source, *hashes]) if plugins else source
        self._told[name] = frozenset().union(*(self._plugins[plugin][1] for plugin in plugins))

    def _store(self, name: str, profile: Profile) -> None:
        for strategy in ReplicasStrategy:
            self._variants[name, strategy] = with_strategy(profile, is_binpack=strategy is ReplicasStrategy.BINPACK)
