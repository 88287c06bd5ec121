"""`pods/log`, `exec`, `attach` and `portforward` on the host, for pods of members.

The host authorizes the subresource of the pod with its name there. The request then goes to the pod's cluster as any
request through `connector.py`, where the member authorizes the user again.
"""

from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.paths import ResourcePath
from federation.apimachinery.resources import PODS
from federation.apiserver.http.asgi import Request, is_asked
from federation.apiserver.http.websockets import WEBSOCKET
from federation.apiserver.registry.registry import Registry
from federation.memberproxy.connector import MemberProxy
from federation.memberproxy.mergedreader import MergedReader

POD_SUBRESOURCES = ("log", "exec", "attach", "portforward")


class PodConnector:
    """A `Connector` of one of these subresources. `registry` has the host's own pods."""

    is_namespaced = True
    forwards = False

    def __init__(self, pods: MergedReader, proxy: MemberProxy, registry: Registry) -> None:
        self._pods = pods
        self._proxy = proxy
        self._registry = registry

    def is_watch(self, _request: Request, path: ResourcePath) -> bool:
        """Return whether the request is for a log, which only reads."""
        return path.subresource == "log"

    def is_stream(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the request is a followed log or a connection."""
        if WEBSOCKET in request.scope.get("extensions", ()):
            return True
        return path.subresource == "log" and is_asked(request.query, "follow")

    def narrower_right(self, _request: Request, _path: ResourcePath, _verb: str) -> None:
        """Return None: the right on the pod is needed."""

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Pass the request on to the pod; NotFound, Conflict if the name means several pods."""
        await self._refuse_own(path)
        cluster, pod = await self._pods.find(request, path.namespace, path.name)
        target = f"{PODS.path(path.namespace, pod['metadata']['name'])}/{path.subresource}"
        await self._proxy.pass_on(request, cluster, target, timeout_s=timeout_s)

    async def _refuse_own(self, path: ResourcePath) -> None:
        info = self._registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
        try:
            await self._registry.get(info, path.namespace, path.name)
        except NotFound:
            return
        raise ApiError(
            f'pods/{path.subresource} of "{path.name}": this pod is an object of the host, and this API server has no'
            " kubelets; pods that run in members are called CLUSTER-NAME",
            code=501,
            reason="NotImplemented",
        )

    def stop(self) -> None:
        """Do nothing: the proxy ends its requests."""
