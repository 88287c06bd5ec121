"""The LimitRanges of all namespaces, applied to new Pods and to PersistentVolumeClaims, as in Kubernetes.

An `AdmissionPlugin`, which the chain calls only while a LimitRange exists, and the `Hook` of the kind: a write of this
process applies before its response, and writes of other processes through a watch. The rules are in
`semantics/quota/limitranges.py`.
"""

from collections.abc import Callable, Iterator

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import CREATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.quota.limitranges import (
    LimitRange,
    apply_defaults,
    claim_violations,
    parse_limit_range,
    pod_violations,
)
from federation.apiserver.verbs.context import VerbContext, run_hook

_PREFIX = "/core/limitranges/"
_PODS, _CLAIMS = "pods", "persistentvolumeclaims"


class LimitRanges:
    """The stored LimitRanges, parsed."""

    resources = frozenset({_PODS, _CLAIMS})

    def __init__(self, context: VerbContext, on_change: Callable[[bool], None]) -> None:
        """`on_change` receives whether there is any LimitRange."""
        self._store = context.store
        self._on_change = on_change
        self._known: dict[str, dict[str, tuple[str, int, LimitRange]]] = {}
        """Uid, revision and parsed form by namespace and name."""
        context.hooks[_PREFIX] = self

    async def load(self) -> int:
        """Load the stored LimitRanges and return the revision of that list."""
        page = await self._store.list(_PREFIX)
        self._known = {}
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        self._on_change(bool(self._known))
        return page.revision

    async def run(self) -> None:
        """Watch the LimitRanges until cancelled."""
        await run_hook(self._store, _PREFIX, await self.load(), self)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Use the LimitRange, unless a newer revision is in use."""
        metadata = obj["metadata"]
        revision = int(metadata["resourceVersion"])
        known = self._known.setdefault(metadata["namespace"], {})
        current = known.get(metadata["name"])
        if current is None or current[1] < revision:
            known[metadata["name"]] = (metadata["uid"], revision, parse_limit_range(obj))
            self._on_change(True)

    def removed(self, obj: Object) -> None:
        """Remove the LimitRange."""
        metadata = obj["metadata"]
        known = self._known.get(metadata["namespace"], {})
        current = known.get(metadata["name"])
        if current is not None and current[0] == metadata["uid"]:
            del known[metadata["name"]]
        if not known:
            self._known.pop(metadata["namespace"], None)
        self._on_change(bool(self._known))

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return a new Pod with the defaults of its namespace."""
        obj = request.obj
        assert obj is not None
        if request.resource.group_resource == _PODS:
            for limit_range in self._concerning(request):
                apply_defaults(obj, limit_range)
        return obj

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden for an object outside of the limits of its namespace."""
        del access
        obj = request.obj
        assert obj is not None
        find = pod_violations if request.resource.group_resource == _PODS else claim_violations
        for limit_range in self._concerning(request):
            if found := list(find(obj, limit_range)):
                text = found[0] if len(found) == 1 else f"[{', '.join(dict.fromkeys(found))}]"
                resource = request.resource
                raise Forbidden(
                    f'{resource.group_resource} "{request.name}" is forbidden: {text}',
                    details={"name": request.name, "group": resource.group, "kind": resource.plural},
                )

    def _concerning(self, request: AdmissionRequest) -> Iterator[LimitRange]:
        """Yield the LimitRanges of the namespace, none for subresources and for updates of Pods."""
        is_update = request.operation != CREATE
        if request.subresource or (is_update and request.resource.group_resource == _PODS):
            return
        if request.old is not None and request.old["metadata"].get("deletionTimestamp"):
            return
        for _, (_, _, limit_range) in sorted(self._known.get(request.namespace, {}).items()):
            yield limit_range
