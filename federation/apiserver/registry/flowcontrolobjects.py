"""FlowSchemas and PriorityLevelConfigurations: create the server's own, report dangling schemas, publish all of them.

The server's own objects are created at start and after a deletion. Objects with the annotation
`apf.kubernetes.io/autoupdate-spec: "true"` also get their spec back; an administrator who changes a spec sets it to
`"false"`. The condition `Dangling` of a schema says whether its priority level is missing. `http/flowcontrol.py`
receives the objects after every change.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Final

from federation.apimachinery.conditions import set_condition
from federation.apimachinery.effect import Effect
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.registry.suggestedflowcontrol import flow_control_specs
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.validation.flowcontrolvalidation import GROUP, MANDATORY
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Writer

_PREFIX = f"/{GROUP}/"
_AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_PRODUCER = WriteOptions(field_manager="api-priority-and-fairness-config-producer-v1")
_CONSUMER = WriteOptions(field_manager="api-priority-and-fairness-config-consumer-v1")
Configure = Callable[[Sequence[Object], Sequence[Object]], None]
"""Called with all FlowSchemas and all PriorityLevelConfigurations. They are read-only."""


class FlowControlObjects:
    """The flow control objects of one registry."""

    def __init__(self, context: VerbContext, writer: Writer) -> None:
        self._context = context
        self._writer = writer
        self._specs = flow_control_specs(context.options.system_namespaces)
        self._configure: Configure | None = None
        self._objects: tuple[Sequence[Object], Sequence[Object]] | None = None

    def set_consumer(self, configure: Configure) -> None:
        """Publish the objects to `configure`: now, if they are loaded, and after every change."""
        self._configure = configure
        if self._objects is not None:
            configure(*self._objects)

    async def ensure(self) -> None:
        """Create or repair the server's own objects, and publish all."""
        own = [(self._info(kind), name, spec) for kind, specs in self._specs.items() for name, spec in specs.items()]
        await asyncio.gather(*(self._ensure_object(*each) for each in own))
        await self._publish()

    async def run(self) -> None:
        """Follow all changes until cancelled."""
        since = await self._context.store.revision()
        await self.ensure()
        async for batch in self._context.store.watch(_PREFIX, since):
            if batch:
                await self.ensure()

    async def _ensure_object(self, info: KindInfo, name: str, spec: Object) -> None:
        entry = await self._context.store.get(info.key("", name))
        if entry is None:
            metadata = {"name": name, "annotations": {_AUTO_UPDATE: "true"}}
            obj = {"apiVersion": f"{GROUP}/v1", "kind": info.resource.kind, "metadata": metadata, "spec": dict(spec)}
            with contextlib.suppress(AlreadyExists):  # another process created it first
                await self._writer.create(info, "", obj, _PRODUCER)
            return
        if name in MANDATORY[info.resource.kind]:
            return  # validation keeps its spec
        live = encoding.decode(entry.value)
        annotations = live["metadata"].get("annotations") or {}
        if annotations.get(_AUTO_UPDATE) != "true" or live["spec"] == spec:
            return
        with contextlib.suppress(NotFound):  # deleted: its event repeats all this
            await self._writer.change(info, "", name, lambda live: ({**live, "spec": dict(spec)}, False), _PRODUCER)

    async def _publish(self) -> None:
        levels = await self._list("PriorityLevelConfiguration")
        schemas = await self._list("FlowSchema")
        names = {level["metadata"]["name"] for level in levels}
        # The server first decides by the new objects, then reports that it does.
        self._objects = schemas, levels
        if self._configure is not None:
            self._configure(schemas, levels)
        for schema in schemas:
            await self._report(schema, names)

    async def _list(self, kind: str) -> list[Object]:
        """Return the objects of a kind that act on this server."""
        info = self._info(kind)
        page = await self._context.store.list(info.prefix)
        found = [encoding.decode(entry.value) for entry in page.entries]
        effect_of = self._context.effect_of
        return [
            obj
            for obj in found
            if obj["metadata"]["name"] in self._specs[kind] or effect_of(info.resource, obj) is not Effect.NONE
        ]

    async def _report(self, schema: Object, levels: set[str]) -> None:
        """Write whether the schema's priority level is missing, if its status does not say so yet."""
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        text = f"This FlowSchema references the PriorityLevelConfiguration object named {json.dumps(level)}"
        status, reason, end = ("False", "Found", "and it exists")
        if level not in levels:
            status, reason, end = ("True", "NotFound", "but there is no such object")
        now = self._context.clock.now()

        def conditions(obj: Object) -> list[Object]:
            reported = (obj.get("status") or {}).get("conditions") or []
            message = f"{text} {end}"
            return set_condition(reported, type_="Dangling", status=status, now=now, reason=reason, message=message)

        def change(live: Object) -> tuple[Object, bool]:
            return {**live, "status": {**(live.get("status") or {}), "conditions": conditions(live)}}, False

        if conditions(schema) == ((schema.get("status") or {}).get("conditions") or []):
            return
        with contextlib.suppress(NotFound):
            info, name = self._info("FlowSchema"), schema["metadata"]["name"]
            await self._writer.change(info, "", name, change, _CONSUMER, subresource="status")

    def _info(self, kind: str) -> KindInfo:
        return self._context.kinds.by_kind(GROUP, "v1", kind)
