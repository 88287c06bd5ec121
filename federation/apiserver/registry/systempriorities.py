"""The PriorityClasses that every cluster has: kube-apiserver creates them at its start."""

import contextlib

from federation.apimachinery.errors import AlreadyExists, ValueDamaged
from federation.apiserver.semantics.podclasses import SYSTEM_PRIORITIES
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Writer


async def ensure_system_priorities(context: VerbContext, writer: Writer) -> None:
    """Create those that do not exist."""
    info = context.kinds.lookup("scheduling.k8s.io", "v1", "priorityclasses")
    for name, (value, description) in SYSTEM_PRIORITIES.items():
        with contextlib.suppress(AlreadyExists, ValueDamaged):
            if await context.store.get(info.key("", name)) is None:
                obj = {"metadata": {"name": name}, "value": value, "description": description}
                await writer.create(info, "", obj, WriteOptions())
