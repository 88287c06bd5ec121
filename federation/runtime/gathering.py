"""Of the changes that a watch brought together, those that still say something.

A member's Deployment reports three or four statuses within a tenth of a second, and each would be stored, indexed and
shown to all handlers. A handler compares two states; it gets the newest one, as after a list.

Decision: docs/decisions/0202-changes-of-members-are-gathered.md
"""

from federation.apimachinery.objectshape import is_storable
from federation.client.client import WatchBatch, WatchEventType
from federation.runtime.indexer import cache_key

_STATES = frozenset((WatchEventType.ADDED, WatchEventType.MODIFIED))


def newest_states(batch: WatchBatch) -> WatchBatch:
    """Return the batch without states of an object that a later one replaces; deletions and their order stay.

    Malformed items stay, and replace nothing: the informer rejects them.
    """
    if len(batch) < 2:
        return batch
    kept: WatchBatch = []
    replaced = set()
    for event in reversed(batch):
        if is_storable(event.object):
            key = cache_key(event.object)
            if event.type not in _STATES:
                replaced.discard(key)
            elif key in replaced:
                continue
            else:
                replaced.add(key)
        kept.append(event)
    kept.reverse()
    return kept
