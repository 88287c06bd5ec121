"""Arrivals from records of decisions: what users applied in the recorded time, and when. Pure.

A record has each object that was decided, as it was then (`scheduling/replay`). An object that appears or whose
template changes is an arrival. Deletions are not recorded, and neither is the content of Secrets and ConfigMaps, whose
arrivals are left out.
"""

from collections.abc import Iterable, Iterator

from federation.apimachinery.resources import Object
from federation.scheduling.replay.logentries import Chunk, Decided, Header, Key, read, restored
from federation.twin.steps import Arrival, renamed

_PRIVATE = frozenset(("Secret", "ConfigMap"))


def arrivals_of(chunks: Iterable[Chunk], since_us: int, times: int = 1) -> Iterator[Arrival]:
    """Yield the arrivals since a time, from which they count; each `times` times, the further ones with other names."""
    objects: dict[Key, Object] = {}
    seen: dict[Key, Object] = {}
    for entry in read(chunks):
        if isinstance(entry, Header):
            objects.clear()  # the segment has whole objects
        elif isinstance(entry, Decided):
            projected = objects[entry.key] = restored(objects.get(entry.key), entry.whole, entry.patch)
            template = projected["template"]
            if seen.get(entry.key) == template:
                continue
            seen[entry.key] = template
            if entry.at_us < since_us or template.get("kind") in _PRIVATE:
                continue
            at_s = (entry.at_us - since_us) / 1_000_000
            manifest = _manifest(template, entry.key[0])
            yield Arrival(at_s, manifest)
            for number in range(2, times + 1):
                yield Arrival(at_s, renamed(manifest, f"-{number}"))


def _manifest(template: Object, namespace: str) -> Object:
    metadata = dict(template["metadata"])
    if namespace:
        metadata["namespace"] = namespace
    return {**template, "metadata": metadata}
