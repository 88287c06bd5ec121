"""The scheduling profiles in force: the default one, and one per SchedulingProfile object.

A profile is merged once and handed out as the same object until it changes, because the engine keeps the plugins that
it made for it. Pure; the schedule controller feeds it.
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
        self._hashes: dict[str, str] = {}
        self._variants: dict[tuple[str, ReplicasStrategy], Profile] = {}
        self._store("", default)

    def get(self, name: str, strategy: ReplicasStrategy) -> Profile | None:
        """Return the profile for a policy's strategy; None when there is no profile of that name."""
        return self._variants.get((name, strategy))

    def hash(self, name: str) -> str:
        """Return the hash of what the profile object says; "" for the default and for one that does not exist."""
        return self._hashes.get(name, "")

    def put(self, source: Mapping[str, Any]) -> None:
        """Add or replace the profile of a SchedulingProfile object."""
        name = str(source["metadata"]["name"])
        self._hashes[name] = hash_of(source.get("spec") or {})
        self._store(name, apply_profile(self._default, source))

    def remove(self, name: str) -> None:
        """Forget a profile."""
        self._hashes.pop(name, None)
        for strategy in ReplicasStrategy:
            self._variants.pop((name, strategy), None)

    def _store(self, name: str, profile: Profile) -> None:
        for strategy in ReplicasStrategy:
            self._variants[name, strategy] = with_strategy(profile, is_binpack=strategy is ReplicasStrategy.BINPACK)
