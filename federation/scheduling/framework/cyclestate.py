"""Data that plugins pass from one extension point to the next within one scheduling cycle.

Part of the public plugin API. It holds plugin data only; the framework's own state is in `cycle.py`. A state lives for
one cycle; plugins keep nothing between cycles.
"""

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any


class CycleState:
    """The time of the decision, data by plugin, and the plugins' remarks about clusters."""

    __slots__ = ("_data", "_remarks", "now")

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._data: dict[Hashable, Any] = {}
        self._remarks: dict[str, dict[str, tuple[str, ...]]] = {}

    def write(self, key: Hashable, value: Any) -> None:
        """Store a value for later extension points. The key is the plugin's NAME, or a tuple that starts with it."""
        self._data[key] = value

    def read(self, key: Hashable) -> Any:
        """Return the value written under the key in this cycle, None when there is none."""
        return self._data.get(key)

    def remark(self, plugin: str, cluster: str, *reasons: str) -> None:
        """Record why a plugin scored, selected or divided as it did; `fedctl why` shows it for the cluster."""
        by_cluster = self._remarks.setdefault(plugin, {})
        by_cluster[cluster] = tuple(dict.fromkeys((*by_cluster.get(cluster, ()), *reasons)))

    @property
    def remarks(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Plugin → cluster → remarks."""
        return self._remarks
