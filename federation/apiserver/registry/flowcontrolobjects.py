"""The mandatory FlowSchemas and PriorityLevelConfigurations: created at start, and again when they are deleted.

Validation keeps their specs (`semantics/validation/flowcontrolvalidation.py`), so they never need repair. Nothing of
this server reads them.
"""

from federation.apimachinery.errors import AlreadyExists
from federation.apiserver.semantics.validation.flowcontrolvalidation import GROUP, MANDATORY
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Writer

_PREFIX = f"/{GROUP}/"
_ANNOTATIONS = {"apf.kubernetes.io/autoupdate-spec": "true"}
_OPTIONS = WriteOptions(field_manager="api-priority-and-fairness-config-producer-v1")


class FlowControlObjects:
    """Keeps the mandatory objects of one registry."""

    def __init__(self, context: VerbContext, writer: Writer) -> None:
        self._context = context
        self._writer = writer

    async def ensure(self) -> None:
        """Create the mandatory objects that are missing."""
        for kind, specs in MANDATORY.items():
            info = self._context.kinds.by_kind(GROUP, "v1", kind)
            for name, spec in specs.items():
                if await self._context.store.get(info.key("", name)) is not None:
                    continue
                metadata = {"name": name, "annotations": dict(_ANNOTATIONS)}
                obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": dict(spec)}
                try:
                    await self._writer.create(info, "", obj, _OPTIONS)
                except AlreadyExists:
                    continue  # another process created it first

    async def run(self) -> None:
        """Create the mandatory objects again after each deletion, until cancelled."""
        since = await self._context.store.revision()
        await self.ensure()
        async for batch in self._context.store.watch(_PREFIX, since):
            if any(event.type is EventType.DELETED for event in batch):
                await self.ensure()
