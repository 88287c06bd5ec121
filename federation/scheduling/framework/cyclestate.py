"""What plugins may carry from one extension point to the next within one decision.

Part of the public plugin API. It holds plugin data only: the framework's own bookkeeping stays in the runner
(STYLE 32). One state lives as long as one decision; plugins keep nothing between decisions.
"""

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any


class CycleState:
    """The moment of the decision, a private shelf for each plugin, and what plugins remark about clusters."""

    __slots__ = ("_data", "_remarks", "now")

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._data: dict[Hashable, Any] = {}
        self._remarks: dict[str, dict[str, tuple[str, ...]]] = {}

    def write(self, key: Hashable, value: Any) -> None:
        """Keep a value for later extension points; take your plugin's NAME as key, or a tuple that starts with it."""
        self._data[key] = value

    def read(self, key: Hashable) -> Any:
        """Return what was written under the key in this decision, None when nothing was."""
        return self._data.get(key)

    def remark(self, plugin: str, cluster: str, *reasons: str) -> None:
        """Say why a plugin scored, selected or divided as it did; `fedctl why` shows it beside the cluster."""
        said = self._remarks.setdefault(plugin, {})
        said[cluster] = (*said.get(cluster, ()), *reasons)

    @property
    def remarks(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Plugin → cluster → what it remarked."""
        return self._remarks
