"""The agent's record of what the host delivered, in memory and in one file of the agent's folder.

The file lets an agent that starts while the host is away repair drift. It holds what the member's API server holds, and
no Secret: those are never recorded. A file that cannot be read is an empty record, which the next connection fills.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import SECRETS, Object, Resource
from federation.apiserver.auth.pki import write_private
from federation.planning.drift.delivered import Delivered

_FILE = "delivered.json"


class Kind(NamedTuple):
    """A delivered kind, and the path of its replicas."""

    resource: Resource
    replicas: dotpaths.Path


class Key(NamedTuple):
    """One object of the member."""

    resource: Resource
    namespace: str
    name: str


@dataclass(slots=True)
class Record:
    """The kinds that the host delivers, and the objects as it delivered them."""

    kinds: list[Kind] = field(default_factory=list)
    objects: dict[Key, Delivered] = field(default_factory=dict)


def kinds_of(types: Iterable[FederatedType]) -> list[Kind]:
    """Return the kinds to record, without Secrets."""
    return [Kind(type_.resource, type_.paths.replicas_spec) for type_ in types if type_.resource != SECRETS]


def key_of(resource: Resource, obj: Object) -> Key:
    """Return the key of an object."""
    return Key(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


class DeliveredFile:
    """The file of the record in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _FILE

    def load(self) -> Record:
        """Return the record, an empty one if there is none or it is unusable."""
        try:
            held = orjson.loads(self._path.read_bytes())
            kinds = [Kind(_resource(each), tuple(each[5])) for each in held["kinds"]]
            record = Record(kinds)
            for number, uid, applied, configuration in held["objects"]:
                delivered = Delivered(configuration, uid, applied)
                record.objects[key_of(kinds[number].resource, configuration)] = delivered
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return Record()
        return record

    def store(self, record: Record) -> None:
        """Write the record; objects of kinds that it does not name any more are omitted."""
        numbers = {kind.resource: number for number, kind in enumerate(record.kinds)}
        kinds = [
            [kind.group, kind.version, kind.kind, kind.plural, kind.namespaced, replicas]
            for kind, replicas in record.kinds
        ]
        objects = [
            [numbers[key.resource], each.uid, each.applied, each.configuration]
            for key, each in record.objects.items()
            if key.resource in numbers
        ]
        write_private(self._path, orjson.dumps({"kinds": kinds, "objects": objects}))


def _resource(values: Sequence[str | bool]) -> Resource:
    group, version, kind, plural, namespaced = values[:5]
    return Resource(str(group), str(version), str(kind), str(plural), namespaced=bool(namespaced))
