"""Subresources: scale, a pod's binding and eviction, a namespace's finalize.

Each is an ordinary write of the parent under a narrower contract. `status` is part of `writes.py`.
"""

from dataclasses import replace
from typing import Any

import orjson

from federation.apimachinery import dotpaths
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import (
    BadRequest,
    Conflict,
    MethodNotAllowed,
    TooManyRequests,
    UnsupportedMediaType,
    cause,
    invalid,
)
from federation.apimachinery.fielderrors import invalid as invalid_field
from federation.apimachinery.jsonpatch import apply_json_patch
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import compile_label_selector, format_label_selector
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.fieldownership.apply import apply
from federation.apiserver.semantics.kinds.kinds import KindInfo, ScalePaths
from federation.apiserver.store.interface import Entry
from federation.apiserver.verbs.context import VerbContext, object_modified, status_details
from federation.apiserver.verbs.deleteoptions import read_delete_options
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.fieldvalidation import report_problems, to_texts
from federation.apiserver.verbs.patching import JSON, MERGE, STRATEGIC, Patch
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Writer

_INT32_MAX = 2**31 - 1
_PDB_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


class Subresources:
    """Subresources for one registry."""

    def __init__(self, context: VerbContext, writer: Writer, deleter: Deleter) -> None:
        self._context = context
        self._writer = writer
        self._deleter = deleter

    async def get_scale(self, info: KindInfo, namespace: str, name: str) -> bytes:
        """Return the autoscaling/v1 Scale of a workload."""
        entry = await self._context.get_entry(info, namespace, name)
        return orjson.dumps(to_scale(info, encoding.decode(await self._context.from_storage(info, entry.value))))

    async def create(
        self, info: KindInfo, namespace: str, name: str, subresource: str, obj: Object, options: WriteOptions
    ) -> bytes:
        """Handle a POST: bind or evict a pod."""
        if subresource == "binding":
            _check_posted("Binding", ("v1",), obj, namespace, name)
            _check_known("Binding", "v1", obj, ("target",), options)
            return await self._bind(info, namespace, name, obj, options)
        if subresource == "eviction":
            _check_posted("Eviction", ("policy/v1", "policy/v1beta1"), obj, namespace, name, requires_name=True)
            _check_known("Eviction", "v1", obj, ("deleteOptions",), options)
            return await self._evict(info, namespace, name, obj, options)
        raise MethodNotAllowed(f"create is not supported on {info.resource.plural}/{subresource}")

    async def update(
        self, info: KindInfo, namespace: str, name: str, subresource: str, obj: Object, options: WriteOptions
    ) -> bytes:
        """Replace a Scale, or finalize a namespace."""
        if subresource == "finalize":
            return await self._finalize(info, name, obj, options)
        if subresource != "scale":
            raise MethodNotAllowed(f"update is not supported on {info.resource.plural}/{subresource}")
        _check_posted("Scale", ("autoscaling/v1",), obj, namespace if info.resource.namespaced else "", name)
        revision = _part("Scale", obj, "metadata").get("resourceVersion") or ""

        def replaced(live: Object) -> tuple[Object, bool]:
            if revision not in {"", live["metadata"]["resourceVersion"]}:
                raise object_modified(info, name)
            return with_replicas(info, live, _wanted_replicas(name, obj)), bool(revision)

        return await self._change_scale(info, namespace, name, replaced, options)

    async def patch(
        self, info: KindInfo, namespace: str, name: str, subresource: str, patch: Patch, options: WriteOptions
    ) -> bytes:
        """Patch a Scale."""
        if subresource != "scale":
            raise MethodNotAllowed(f"patch is not supported on {info.resource.plural}/{subresource}")

        def patched(live: Object) -> tuple[Object, bool]:
            if patch.is_apply:
                return self._applied_scale(info, name, live, patch, options), patch.pins_revision
            scale = to_scale(info, live)
            scale["spec"].setdefault("replicas", 0)  # a JSON patch may replace or test it
            wanted = _patched_scale(scale, patch)
            if _part("Scale", wanted, "metadata").get("resourceVersion") != scale["metadata"]["resourceVersion"]:
                raise object_modified(info, name)
            return with_replicas(info, live, _wanted_replicas(name, wanted)), patch.pins_revision

        return await self._change_scale(info, namespace, name, patched, options, is_apply=patch.is_apply)

    def _applied_scale(self, info: KindInfo, name: str, live: Object, patch: Patch, options: WriteOptions) -> Object:
        """Return the parent after a server-side apply of its Scale: an apply of its replicas, with their owners.

        Conflict when another manager owns the replicas with another value.
        """
        scale = patch.as_new()
        if _part("Scale", scale, "metadata").get("resourceVersion", "") not in {
            "",
            live["metadata"]["resourceVersion"],
        }:
            raise object_modified(info, name)
        resource = info.resource
        config: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        if _part("Scale", scale, "spec").get("replicas") is not None:
            config = with_replicas(info, config, _wanted_replicas(name, scale))
        return apply(
            info.schema,
            live,
            config,
            manager=options.field_manager,
            force=options.force,
            api_version=resource.api_version,
            subresource="scale",
            now=self._context.clock.now(),
        )

    async def _change_scale(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        change: Any,
        options: WriteOptions,
        *,
        is_apply: bool = False,
    ) -> bytes:
        value = await self._writer.change(
            info, namespace, name, change, options, subresource="scale", is_apply=is_apply
        )
        return orjson.dumps(to_scale(info, encoding.decode(value)))

    async def _finalize(self, info: KindInfo, name: str, obj: Object, options: WriteOptions) -> bytes:
        revision = _part("Namespace", obj, "metadata").get("resourceVersion") or ""

        def finalized(live: Object) -> tuple[Object, bool]:
            if revision not in {"", live["metadata"]["resourceVersion"]}:
                raise object_modified(info, name)
            live["spec"] = {"finalizers": _part("Namespace", obj, "spec").get("finalizers") or []}
            return live, bool(revision)

        return await self._writer.change(info, "", name, finalized, options, subresource="finalize")

    async def _bind(self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions) -> bytes:
        """Assign an unassigned pod to a node: the scheduler's write."""
        node = _part("Binding", obj, "target").get("name") or ""
        if not node:
            raise invalid("Binding", "", name, [cause("FieldValueRequired", "Required value", "target.name")])
        if self._context.active_admission is not None:
            entry = await self._context.get_entry(info, namespace, name)
            posted = {"apiVersion": "v1", "kind": "Binding", **obj}
            await self._admit(info, entry, posted, options, "binding")
        now = to_rfc3339(self._context.clock.now())

        def bound(live: Object) -> tuple[Object, bool]:
            if live["metadata"].get("deletionTimestamp"):
                raise _pod_conflict(info, name, f"pod {name} is being deleted, cannot be assigned to a host")
            if assigned := live["spec"].get("nodeName"):
                raise _pod_conflict(info, name, f'pod {name} is already assigned to node "{assigned}"')
            live["spec"]["nodeName"] = node
            status = live.get("status") or {}
            kept = [found for found in status.get("conditions") or () if found.get("type") != "PodScheduled"]
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
            live["status"] = {**status, "conditions": [*kept, scheduled]}
            return live, False

        # Admission has seen the Binding; the write of the pod is the server's own.
        await self._writer.change(info, namespace, name, bound, replace(options, user=None), subresource="binding")
        return _success()

    async def _evict(self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions) -> bytes:
        """Delete a pod unless a disruption budget forbids it."""
        entry = await self._context.get_entry(info, namespace, name)
        posted = {"apiVersion": "policy/v1", "kind": "Eviction", **obj}
        obj = await self._admit(info, entry, posted, options, "eviction")
        given = read_delete_options(_part("Eviction", obj, "deleteOptions"))
        pod, is_dry_run = encoding.decode(entry.value), given.dry_run or options.dry_run
        if not _is_exempt_from_budgets(pod):
            await self._consume_budget(namespace, pod, replace(options, dry_run=is_dry_run))
        await self._deleter.delete(info, namespace, name, replace(given, dry_run=is_dry_run))
        return _success()

    async def _admit(
        self, info: KindInfo, entry: Entry, posted: Object, options: WriteOptions, subresource: str
    ) -> Object:
        admission = self._context.active_admission
        if admission is None:
            return posted
        parent = encoding.decode(info.to_version(entry.value))
        return await admission.admit_posted(info, parent, posted, options, subresource=subresource)

    async def _consume_budget(self, namespace: str, pod: Object, options: WriteOptions) -> None:
        """Decrement the budget that selects the pod; TooManyRequests when it allows no disruption."""
        budgets = self._context.kinds.lookup("policy", "v1", "poddisruptionbudgets")
        labels = pod["metadata"].get("labels") or {}
        matching = [
            budget
            for budget in await self._context.list_objects(budgets, namespace)
            if (selector := (budget.get("spec") or {}).get("selector")) is not None
            and compile_label_selector(selector, is_validated=True).matches(labels)
        ]
        if not matching:
            return
        if len(matching) > 1:
            raise BadRequest(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        name = matching[0]["metadata"]["name"]

        def consumed(live: Object) -> tuple[Object, bool]:
            status = dict(live.get("status") or {})
            if (status.get("observedGeneration") or 0) < live["metadata"].get("generation", 0):
                text = f"The disruption budget {name} is still being processed by the server."
                raise _budget_violated(text, retry_after_s=10)
            if _may_evict_unhealthy(pod, live):
                return live, False
            allowed = status.get("disruptionsAllowed") or 0
            if allowed <= 0:
                needed, present = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
                text = f"The disruption budget {name} needs {needed} healthy pods and has {present} currently"
                raise _budget_violated(text)
            now = to_rfc3339(self._context.clock.now())
            disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: now}
            live["status"] = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
            return live, False

        own = replace(options, user=None)
        await self._writer.change(budgets, namespace, name, consumed, own, subresource="status")


def _is_exempt_from_budgets(pod: Object) -> bool:
    """Return whether no budget counts the pod: it is pending, finished or terminating."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in {"Pending", "Succeeded", "Failed"} or bool(pod["metadata"].get("deletionTimestamp"))


def _may_evict_unhealthy(pod: Object, budget: Object) -> bool:
    """Return whether the budget's unhealthyPodEvictionPolicy allows the eviction of a pod that is not ready."""
    status = budget.get("status") or {}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(found.get("type") == "Ready" and found.get("status") == "True" for found in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    needed = status.get("desiredHealthy") or 0
    return bool((status.get("currentHealthy") or 0) >= needed > 0)


def _budget_violated(text: str, *, retry_after_s: int = 0) -> TooManyRequests:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return TooManyRequests(_PDB_VIOLATED, details=details)


def to_scale(info: KindInfo, obj: Object) -> Object:
    """Return the Scale of a workload or custom resource."""
    metadata, paths = obj["metadata"], info.scale or ScalePaths()
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = dotpaths.value_at(obj, paths.spec_replicas)
    status: dict[str, Any] = {"replicas": dotpaths.value_at(obj, paths.status_replicas) or 0}
    if info.is_custom:
        selector = dotpaths.value_at(obj, paths.label_selector) if paths.label_selector else None
        text = selector if isinstance(selector, str) else ""
    else:
        selector = (obj.get("spec") or {}).get("selector") or {}
        text = format_label_selector(selector if info.resource.group else {"matchLabels": selector})
    if text:
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {"replicas": replicas} if replicas else {},  # as Go omits a zero here, but not in the status
        "status": status,
    }


def _part(kind: str, obj: Object, name: str) -> dict[str, Any]:
    """Return an object-valued field of a virtual object, {} when it is absent; BadRequest for another type."""
    part = obj.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {name}: must be an object')
    return part


def _check_posted(
    kind: str, api_versions: tuple[str, ...], obj: Object, namespace: str, name: str, *, requires_name: bool = False
) -> None:
    """Check that kind, version, name and namespace of a virtual object agree with the request's path; BadRequest."""
    api_version = obj.get("apiVersion") or api_versions[0]
    version = str(api_version).rpartition("/")[2]
    if (given := obj.get("kind") or kind) != kind:
        raise BadRequest(f'{given} in version "{version}" cannot be handled as a {kind}: the kinds differ')
    if api_version not in api_versions:
        expected = f"the expected API version ({api_versions[0]})"
        raise BadRequest(f"the API version in the data ({api_version}) does not match {expected}")
    metadata = _part(kind, obj, "metadata")
    if (given := metadata.get("namespace") or namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if (metadata.get("name") or ("" if requires_name else name)) != name:
        if kind == "Scale":
            raise BadRequest(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
        raise BadRequest(f"name in URL does not match name in {kind} object")


def _check_known(kind: str, version: str, obj: Object, parts: tuple[str, ...], options: WriteOptions) -> None:
    """Report the unknown fields of a virtual object, according to `fieldValidation`; BadRequest under Strict."""
    unknown = to_texts(name for name in obj if name not in {"apiVersion", "kind", "metadata", *parts})
    if not unknown or options.field_validation == "Ignore":
        return
    try:
        report_problems(None, unknown, options)
    except BadRequest as error:
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from error


def with_replicas(info: KindInfo, obj: Object, replicas: int) -> Object:
    """Set the number of replicas at the kind's path, in place."""
    steps = dotpaths.split((info.scale or ScalePaths()).spec_replicas)
    fields: dict[str, Any] = obj
    for step in steps[:-1]:
        fields = fields.setdefault(step, {})
    fields[steps[-1]] = replicas
    return obj


def _patched_scale(scale: Object, patch: Patch) -> Object:
    if patch.type == JSON:
        patched: Object = apply_json_patch(scale, patch.body)
    elif patch.type in {MERGE, STRATEGIC}:
        # A Scale has no lists, so the strategic patch of it is a plain merge.
        patched = apply_merge_patch(scale, patch.body)
    else:
        raise UnsupportedMediaType(f"a Scale cannot be patched with {patch.type}")
    return patched


def _wanted_replicas(name: str, scale: Object) -> int:
    replicas = _part("Scale", scale, "spec").get("replicas")
    if replicas is None:
        return 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or abs(replicas) > _INT32_MAX:
        raise BadRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas: must be a 32-bit integer')
    if replicas < 0:
        causes = [invalid_field("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise invalid("Scale", "autoscaling", name, causes)
    return replicas


def _pod_conflict(info: KindInfo, name: str, text: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {info.resource.plural}/binding "{name}": {text}',
        details=status_details(info, name),
    )


def _success() -> bytes:
    return orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
