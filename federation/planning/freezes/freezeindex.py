"""The ChangeFreezes of a world by name, and the objects whose moves they hold. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.planning.changehold import Hold
from federation.planning.freezes.changefreeze import Change, Freeze, compile_freeze, find_frozen


class FreezeIndex:
    """Compiled freezes, empty at first."""

    def __init__(self) -> None:
        self._freezes: dict[str, Freeze] = {}
        self.waiting: set[tuple[str, str]] = set()
        """Namespace and name of federated objects whose move waits for the end of a freeze."""

    def put(self, source: Mapping[str, Any]) -> None:
        """Add or replace a ChangeFreeze."""
        self._freezes[source["metadata"]["name"]] = compile_freeze(source)

    def remove(self, name: str) -> None:
        """Remove a ChangeFreeze."""
        self._freezes.pop(name, None)

    def __bool__(self) -> bool:
        return bool(self._freezes)

    def find(
        self, federated: Mapping[str, Any], labels: Mapping[str, str], change: Change, now: datetime
    ) -> Hold | None:
        """Return the freeze that holds a change of the object in a cluster with these labels, None for none."""
        name, namespace = federated["spec"]["template"]["metadata"]["name"], federated["metadata"].get("namespace", "")
        return find_frozen(self._freezes.values(), namespace, name, labels, change, now)


def left_s(frozen: Hold, now: datetime, retry_s: float = 60.0) -> float:
    """Return for how many seconds a freeze holds, or when to look at a malformed one again."""
    return retry_s if frozen.until is None else max(0.1, (frozen.until - now).total_seconds())
