"""The terminal of a pod: the page with its form, and the WebSocket that the page opens (`terminal.py`).

The page starts nothing by itself: a user who follows a link to it must press the button, and the command is not part of
its address. A handshake must come from a page of ours, because a browser sends cookies with those of any page.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ApiError, BadRequest, Forbidden, Unauthorized
from federation.apimachinery.resources import PODS
from federation.apiserver.http.asgi import Receive, Scope, Send
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket
from federation.web.ui.actionscreen import check_segments
from federation.web.ui.credentials import Session
from federation.web.ui.forms import is_own_page
from federation.web.ui.podscreen import PATH, containers_of
from federation.web.ui.screen import Page, Screen, may_in, nothing_watched
from federation.web.ui.terminal import PROTOCOLS, PreparedTerminal, Terminals
from federation.web.ui.userapi import UserAPI

_EXEC = "exec"
_COMMAND_MAX = 1_000
_SHELL = "sh"


async def _load(page: Page) -> Mapping[str, Any]:
    namespace, name = page.parts["namespace"], page.parts["name"]
    check_segments(namespace, name)
    pod = await page.api.get(PODS.path(namespace, name))
    return {
        "pod": pod,
        "containers": containers_of(pod),
        "is_allowed": await page.may("create", PODS, namespace, name, subresource=_EXEC),
        "command": _SHELL,
        "command_max": _COMMAND_MAX,
        "socket": f"{page.path.removesuffix('/terminal')}/{_EXEC}",
    }


SCREEN = Screen(
    f"{PATH}/terminal", "Terminal", "terminal.html", _load, nothing_watched, is_listed=False, styles_itself=True
)


def to_query(command: str, container: str) -> Sequence[tuple[str, str]]:
    """Return the query of `pods/exec` for a command as a user types it; BadRequest if it is none."""
    if len(command) > _COMMAND_MAX or not command.isprintable():
        raise BadRequest(f"Command: write up to {_COMMAND_MAX} characters in one line")
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise BadRequest(f"Command: {problem}") from problem
    if not words:
        raise BadRequest("Command: write one, for example sh")
    query = [("stdin", "true"), ("stdout", "true"), ("tty", "true"), *(("command", word) for word in words)]
    return [*query, ("container", container)] if container else query


def add_socket(ui: FastAPI, terminals: Terminals, to_session: Any, to_api: Any) -> None:
    """Serve the WebSocket. `to_session` returns the session of a request or None, `to_api` the API of its user."""

    @ui.get(f"{PATH}/{_EXEC}")
    async def connect(request: Request) -> Response:
        socket: ClientSocket | None = (request.scope.get("extensions") or {}).get(WEBSOCKET)
        session = to_session(request)
        if socket is None or not any(offered in PROTOCOLS for offered in socket.subprotocols):
            raise HTTPException(400, "A terminal is opened by its page")
        if session is None:
            raise Unauthorized("Unauthorized: log in first")
        if "origin" not in request.headers or not is_own_page(request):
            raise Forbidden("a terminal is opened by a page of this server only")
        api = to_api(request, session)
        await api.charge()
        return _Terminal(terminals, api, session, socket, dict(request.path_params), dict(request.query_params))


class _Terminal(Response):
    """The answer to a handshake: it lasts as long as the terminal."""

    def __init__(
        self,
        terminals: Terminals,
        api: UserAPI,
        session: Session,
        socket: ClientSocket,
        parts: Mapping[str, str],
        query: Mapping[str, str],
    ) -> None:
        super().__init__()
        self._terminals, self._api, self._session, self._socket = terminals, api, session, socket
        self._namespace, self._name, self._query = parts["namespace"], parts["name"], query

    async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        await self._terminals.run(self._api, self._session.user, self._socket, self._prepare)

    async def _prepare(self) -> PreparedTerminal:
        namespace, name = self._namespace, self._name
        check_segments(namespace, name)
        path = f"{PODS.path(namespace, name)}/{_EXEC}"
        query = to_query(self._query.get("command", ""), self._query.get("container", ""))
        annotations = (await self._api.get(PODS.path(namespace, name)))["metadata"].get("annotations") or {}
        cluster, inner = str(annotations.get(names.MEMBER_CLUSTER) or ""), str(annotations.get(names.RAW_NAME) or name)

        async def why_not() -> str:
            return await why_not_any_more(self._api, namespace, name, cluster, inner)

        return PreparedTerminal(path, query, why_not)


async def why_not_any_more(api: UserAPI, namespace: str, name: str, cluster: str, inner: str) -> str:
    """Return why the user may no longer use a terminal in this pod, or "" if he may or his rights cannot be read."""
    try:
        if not await may_in(api, "", "create", PODS, namespace, name, subresource=_EXEC):
            return "you may no longer run commands in this pod"
        if cluster:
            # A user with a role in a namespace only cannot ask in the cluster; opening the terminal asked there.
            member = f"{FEDERATED_CLUSTERS.path('', cluster)}/proxy"
            if not await may_in(api, member, "create", PODS, namespace, inner, subresource=_EXEC):
                return f"you may no longer run commands in this pod of {cluster}"
    except Unauthorized:
        return "your session has ended"
    except ApiError:
        return ""  # who may not ask in the member, and a server that does not answer, say nothing about rights
    return ""
