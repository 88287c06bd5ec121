"""The Pod Security policy of a namespace, from its labels `pod-security.kubernetes.io/…`. Pure.

A namespace without labels admits everything. A label that cannot be read is an error for writes of the namespace; one
that is stored anyway means the strictest level where it is enforced, and nothing where it only warns.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from federation.apimachinery.fielderrors import Causes, invalid

PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_FIELD: Final = "metadata.labels"


class Level(StrEnum):
    """The standards, the most permissive first."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


_ORDER: Final = {level: index for index, level in enumerate(Level)}


@dataclass(frozen=True, slots=True)
class LevelVersion:
    """A level in a version of Kubernetes; `minor` is None for the latest."""

    level: Level = Level.PRIVILEGED
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


PRIVILEGED: Final = LevelVersion()


@dataclass(frozen=True, slots=True)
class Policy:
    """The levels that a namespace enforces, records and warns about."""

    enforce: LevelVersion = PRIVILEGED
    audit: LevelVersion = PRIVILEGED
    warn: LevelVersion = PRIVILEGED

    @property
    def is_privileged(self) -> bool:
        """Return True if the policy neither refuses nor reports anything."""
        return {self.enforce.level, self.audit.level, self.warn.level} == {Level.PRIVILEGED}

    @property
    def reports(self) -> bool:
        """Return True if the policy warns or records."""
        return {self.audit.level, self.warn.level} != {Level.PRIVILEGED}


NO_POLICY: Final = Policy()


def parse_policy(labels: Mapping[str, str] | None) -> tuple[Policy, Causes]:
    """Return the policy in the labels of a namespace, and the causes of labels that cannot be read."""
    if not labels or not any(key.startswith(PREFIX) for key in labels):
        return NO_POLICY, []
    causes: Causes = []
    # Without a valid level of its own, `warn` follows `enforce`.
    enforce = _parse_mode(labels, "enforce", Level.RESTRICTED, causes)
    audit = _parse_mode(labels, "audit", Level.PRIVILEGED, causes)
    warn = _parse_mode(labels, "warn", Level.PRIVILEGED, causes)
    if PREFIX + "warn" not in labels and labels.get(PREFIX + "enforce") in set(Level):
        minor = warn.minor if PREFIX + "warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor) if enforce.level is not Level.PRIVILEGED else warn
    return Policy(enforce, audit, warn), causes


def is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Return True if pods that `old` admitted may violate `new`."""
    if new == old or new.level is Level.PRIVILEGED:
        return False
    return new.minor != old.minor or _ORDER[new.level] > _ORDER[old.level]


def _parse_mode(labels: Mapping[str, str], mode: str, fallback: Level, causes: Causes) -> LevelVersion:
    level, minor = Level.PRIVILEGED, None
    if (text := labels.get(PREFIX + mode)) is not None:
        try:
            level = Level(text)
        except ValueError:
            level = fallback
            causes.append(invalid(f"{_FIELD}[{PREFIX}{mode}]", text, f"must be one of {', '.join(Level)}"))
    if (text := labels.get(f"{PREFIX}{mode}-version")) is not None and text != "latest":
        found = _VERSION.fullmatch(text)
        if found is None:
            causes.append(invalid(f"{_FIELD}[{PREFIX}{mode}-version]", text, 'must be "latest" or "v1.x"'))
        else:
            minor = int(found[1])
    return LevelVersion(level, minor)
