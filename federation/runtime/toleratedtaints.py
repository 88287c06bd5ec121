"""Until when objects tolerate the taints of their clusters, for `fedctl why`.

The schedule controller records it whenever it reconciles an object; only objects in a tainted cluster have an entry. A
restart fills it again. There is one instance per control plane.
"""

from collections.abc import Mapping
from datetime import datetime

from federation.runtime.controller import Key


class ToleratedTaints:
    """The end of the toleration by object and cluster."""

    def __init__(self) -> None:
        self._ends: dict[Key, Mapping[str, datetime]] = {}

    def record(self, key: Key, ends: Mapping[str, datetime]) -> None:
        """Replace the object's entry; an empty one removes it."""
        if ends:
            self._ends[key] = ends
        else:
            self._ends.pop(key, None)

    def find(self, key: Key) -> Mapping[str, datetime]:
        """Return the ends by cluster, {} when nothing moves the object."""
        return self._ends.get(key) or {}
