"""Edits of a cluster's taints with the syntax and the rules of `kubectl taint`. Pure: `fedctl` writes the result.

`key=value:Effect` and `key:Effect` add a taint, `key:Effect-` and `key-` remove one. A taint is identified by its key
and effect. Read `clustertaints.py` for the taints of the control plane.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}")
_VALUE = re.compile(rf"({_NAME})?")


class TaintEdit(NamedTuple):
    """A taint to add or to remove; to remove, `effect` is "" for all effects."""

    key: str
    value: str = ""
    effect: str = ""
    is_removal: bool = False

    def concerns(self, taint: Mapping[str, Any]) -> bool:
        """Return whether the taint has the key and the effect of the edit."""
        return taint.get("key") == self.key and self.effect in ("", taint.get("effect"))

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")


def parse_edit(text: str) -> TaintEdit:
    """Parse one argument of `fedctl taint`; ConfigurationError names what is wrong."""
    is_removal = text.endswith("-")
    rest, separator, effect = text.removesuffix("-").partition(":")
    key, _, value = rest.partition("=")
    if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
        raise ConfigurationError(f"{text!r}: write key=value:Effect, key:Effect, key:Effect- or key-")
    if effect not in EFFECTS and (separator or not is_removal):
        raise ConfigurationError(f"{text!r}: the effect must be one of {', '.join(EFFECTS)}")
    if key in names.HEALTH_TAINTS:
        raise ConfigurationError(f"{text!r}: the control plane sets and removes this taint")
    return TaintEdit(key, value, effect, is_removal)


def apply_edits(
    taints: Sequence[Mapping[str, Any]] | None, edits: Iterable[TaintEdit], now: datetime, *, overwrite: bool = False
) -> list[Mapping[str, Any]]:
    """Return the taints after the edits; ConfigurationError if one is missing, or exists with another value.

    NoExecute taints and those of the control plane get a `timeAdded`, from which tolerations count.
    """
    result = list(taints or ())
    for edit in edits:
        found = [taint for taint in result if edit.concerns(taint)]
        if edit.is_removal:
            if not found:
                raise ConfigurationError(f"the cluster has no taint {edit}")
            result = [taint for taint in result if not edit.concerns(taint)]
            continue
        if any((taint.get("value") or "") == edit.value for taint in found):
            continue
        if found and not overwrite:
            taint = f"{edit.key}:{edit.effect}"
            raise ConfigurationError(f"the cluster has the taint {taint} with another value; use --overwrite")
        result = [*(taint for taint in result if not edit.concerns(taint)), _to_taint(edit, now)]
    return result


def cordoned(taints: Sequence[Mapping[str, Any]] | None, now: datetime) -> list[Mapping[str, Any]]:
    """Return the taints of a cordoned cluster."""
    return apply_edits(taints, [TaintEdit(names.TAINT_UNSCHEDULABLE, "", "NoSchedule")], now, overwrite=True)


def drained(taints: Sequence[Mapping[str, Any]] | None, now: datetime) -> list[Mapping[str, Any]]:
    """Return the taints of a cluster that is drained; a drain that has begun keeps its time."""
    return apply_edits(taints, [TaintEdit(names.TAINT_DRAIN, "", "NoExecute")], now, overwrite=True)


def uncordoned(taints: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Return the taints without those of cordon and drain."""
    removed = (names.TAINT_UNSCHEDULABLE, names.TAINT_DRAIN)
    return [taint for taint in taints or () if taint.get("key") not in removed]


def _to_taint(edit: TaintEdit, now: datetime) -> dict[str, Any]:
    value = {"value": edit.value} if edit.value else {}
    has_time = edit.effect == "NoExecute" or edit.key in (names.TAINT_UNSCHEDULABLE, names.TAINT_DRAIN)
    return {"key": edit.key, **value, "effect": edit.effect, **({"timeAdded": to_rfc3339(now)} if has_time else {})}
