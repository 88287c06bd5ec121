"""`kubectl logs`, `exec`, `attach`, `port-forward`, `cp` and `debug` on a server that has no kubelets.

What nothing else answers is refused with a Status that tells where the pods are. kubectl first looks for a pod of a
workload, and waits 20 s for one: it names its command in a header, so that this list can be refused as well. Only
kubectl's requests are treated differently, and only when the server has no pod for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.authorization import Authorizer, is_allowed
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.readers import Reader, Readers
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions

_HEADER: Final = b"kubectl-command"
_COMMANDS: Final = {f"kubectl {name}": name for name in ("logs", "exec", "attach", "port-forward", "cp", "debug")}
_SUBRESOURCES: Final = {"log": "logs", "exec": "exec", "attach": "attach", "portforward": "port-forward"}


@dataclass(frozen=True, slots=True)
class PodLocation:
    """A workload whose pods are in other clusters."""

    group: str
    version: str
    plural: str
    kind: str
    name: str
    clusters: Sequence[str]


Locate = Callable[[str, str, str], Sequence[PodLocation]]
"""Returns the workloads of a namespace by label selector, or "" and the name of one of their pods."""


class PodCommands:
    """Refuses what needs a kubelet. Without `locate` it cannot name other clusters, and refuses subresources only."""

    def __init__(self, registry: Registry, authorizer: Authorizer, locate: Locate | None, readers: Readers) -> None:
        self._registry = registry
        self._readers = readers
        self._authorizer = authorizer
        self._locate = locate

    def concerns(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the request needs a check; it costs other requests one comparison."""
        if path.plural != "pods" or path.group:
            return False
        return path.subresource in _SUBRESOURCES or (self._locate is not None and bool(_command(request)))

    async def check(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Raise the refusal of a request that concerns pods of other clusters; return to serve it."""
        if path.subresource:
            if path.subresource in _SUBRESOURCES:
                await self._refuse_subresource(request, path)
        elif verb == "get":
            await self._check_pod(request, path)
        elif verb == "list":
            await self._check_list(request, path)

    async def _refuse_subresource(self, request: Request, path: ResourcePath) -> None:
        await self._check_pod(request, path)
        where = await self._where(request, path, _SUBRESOURCES[path.subresource], "", path.name)
        raise _refused(f'pods/{path.subresource} of "{path.name}": this API server has no kubelets{where}')

    async def _check_pod(self, request: Request, path: ResourcePath) -> None:
        """Raise NotFound with the place of the pod's workload; return when the pod exists."""
        info = self._registry.kinds.lookup("", "v1", "pods")
        try:
            if (reader := self._reader(request)) is not None:
                await reader.get(request, info, path.namespace, path.name)
            else:
                await self._registry.get(info, path.namespace, path.name)
        except NotFound as error:
            command = _command(request) or _SUBRESOURCES.get(path.subresource, "")
            where = await self._where(request, path, command, "", path.name)
            raise NotFound(f"{error.message}{where}", details=error.details) from None

    async def _check_list(self, request: Request, path: ResourcePath) -> None:
        selector = request.query.get("labelSelector", "")
        if not selector:
            return
        info = self._registry.kinds.lookup("", "v1", "pods")
        wanted = ListOptions(label_selector=selector, limit=1)
        if (reader := self._reader(request)) is not None:
            found = await reader.list(request, info, path.namespace, wanted)
        else:
            found = await self._registry.list(info, path.namespace, wanted)
        if not found.items:
            where = await self._where(request, path, _command(request), selector, "")
            raise _refused(f"no pod of this API server matches {selector}{where}")

    def _reader(self, request: Request) -> Reader | None:
        reader = self._readers.get(("", "v1", "pods"))
        return reader if reader is not None and reader.answers(request) else None

    async def _where(self, request: Request, path: ResourcePath, command: str, selector: str, pod: str) -> str:
        """Return where the pods are, as the end of a message; only workloads that the user may read are named."""
        if self._locate is None:
            return ""
        parts = ["; pods run in member clusters"]
        for place in self._locate(path.namespace, selector, pod):
            attributes = Attributes("get", place.group, place.version, place.plural, "", path.namespace, place.name)
            if await is_allowed(self._authorizer, request.user, attributes):
                where = f"is in {', '.join(place.clusters)}" if place.clusters else "is in no cluster"
                parts.append(f'; {place.kind} "{place.name}" {where}')
        return "".join((*parts, f": use kubectl {command} with a pod that `kubectl get pods` shows"))


def _command(request: Request) -> str:
    return _COMMANDS.get(request.header(_HEADER).strip(), "")


def _refused(message: str) -> ApiError:
    return ApiError(message, code=501, reason="NotImplemented")
