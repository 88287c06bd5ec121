"""The web UI below `/ui`, on FastAPI: screens in pages, one address per state, live by server-sent events.

The API server mounts it without authentication: it has a log-in of its own (`login.py`), and reads everything that it
shows through `userapi.py` with the credentials of the session. It needs no request to other hosts. To add a screen, add
a module with a `SCREEN`, its template, and its name to `SCREENS`; a leaf feature names its screens in its record.

Decision: docs/decisions/0046-the-web-ui-is-a-client.md
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ConfigurationError, RequestEntityTooLarge, Unauthorized
from federation.apimachinery.usedtime import in_thread
from federation.apiserver.http.asgi import ASGIApp, Receive, Scope, Send
from federation.apiserver.http.nonresource import SERVER, Mount
from federation.plans.planner import Planners
from federation.web.ui import (
    actionscreen,
    addclusterscreen,
    attention,
    bulkscreen,
    capacityscreen,
    decisionscreen,
    decisionsscreen,
    diffscreen,
    exports,
    fleet,
    graphscreen,
    holdscreen,
    live,
    login,
    mapscreen,
    namespacesscreen,
    newpolicyscreen,
    objectscreen,
    objectsscreen,
    overview,
    planscreen,
    podscreen,
    policiesscreen,
    replayscreen,
    rulesscreen,
    searchscreen,
    terminalscreen,
    timelinescreen,
)
from federation.web.ui.credentials import Sealer, Session
from federation.web.ui.forms import is_genuine, read_form
from federation.web.ui.links import OneTimeLinks
from federation.web.ui.oidclogin import OIDCLogin
from federation.web.ui.rendering import HEADERS, STYLED_POLICY, render, static_file
from federation.web.ui.screen import Page, Screen, problem_of
from federation.web.ui.terminal import Terminals
from federation.web.ui.userapi import UserAPI

SCREENS = (
    overview.SCREEN,
    objectsscreen.SCREEN,
    policiesscreen.SCREEN,
    fleet.SCREEN,
    attention.SCREEN,
    decisionsscreen.SCREEN,
    planscreen.SCREEN,
    capacityscreen.SCREEN,
    replayscreen.SCREEN,
    objectscreen.SCREEN,
    fleet.CLUSTER_SCREEN,
    holdscreen.SCREEN,
    decisionscreen.SCREEN,
    diffscreen.SCREEN,
    actionscreen.SCREEN,
    podscreen.SCREEN,
    podscreen.LOGS_SCREEN,
    terminalscreen.SCREEN,
    searchscreen.SCREEN,
    timelinescreen.SCREEN,
    mapscreen.SCREEN,
    graphscreen.SCREEN,
    bulkscreen.SCREEN,
    addclusterscreen.SCREEN,
    newpolicyscreen.SCREEN,
    namespacesscreen.SCREEN,
    rulesscreen.SCREEN,
)
"""The screens of the spine; those that are listed are in the navigation in this order, before those of features."""
_STATIC_AGE = "public, max-age=3600"


def mount(
    read_key: Callable[[], bytes],
    clock: Clock,
    planners: Planners,
    oidc: OIDCLogin | None = None,
    features: Sequence[Screen] = (),
    *,
    takes_agents: bool = True,
) -> Mount:
    """Return the app as the API server mounts it below `/ui`.

    `read_key` returns the secret behind sessions and one-time links, `planners` compute plans with the rights of users.
    With `oidc` users can log in at an identity provider. `features` are the screens of leaf features.
    `takes_agents` says whether agents of clusters can register.
    """
    sealer = Sealer(read_key, clock)
    ui = FastAPI(title="federation web UI", docs_url=None, redoc_url=None, openapi_url=None)
    screens = (*SCREENS, *features)
    ui.state.listed = [screen for screen in screens if screen.is_listed]
    login.add_routes(ui, sealer, OneTimeLinks(read_key, clock), oidc)
    _add_static(ui)
    terminalscreen.add_socket(ui, Terminals(clock), lambda request: login.session_of(request, sealer), _api_of)
    for screen in screens:
        _add_screen(ui, screen, sealer, clock, planners, takes_agents=takes_agents)

    @ui.get("/ui")
    @ui.get("/ui/")
    async def start() -> Response:
        return RedirectResponse(overview.SCREEN.path, 303)

    @ui.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        title = "There is no such page" if error.status_code == 404 else str(error.detail)
        session = login.session_of(request, sealer)
        return _problem(request, session, error.status_code, title, "Check the address, or start from the overview.")

    @ui.exception_handler(RequestEntityTooLarge)
    async def on_large_form(request: Request, error: RequestEntityTooLarge) -> Response:
        session = login.session_of(request, sealer)
        return _problem(request, session, error.code, "That is too much at once", problem_of(error))

    @ui.exception_handler(ApiError)
    async def on_refusal(request: Request, error: ApiError) -> Response:
        if isinstance(error, Unauthorized):
            return login.to_login(request, is_over=True)
        session = login.session_of(request, sealer)
        return _problem(request, session, error.code, "The control plane could not answer", problem_of(error))

    @ui.exception_handler(500)
    async def on_failure(request: Request, error: Exception) -> Response:
        del error  # the API server logs it
        session = login.session_of(request, sealer)
        return _problem(
            request, session, 500, "The page failed", "Try again. The log of the control plane has the cause."
        )

    return Mount(_with_headers(ui), ("/ui",), has_login=True)


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Return the app with the security headers on every response that does not have its own."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers") or ())
                present = {name.lower() for name, _ in headers}
                added = ((name.encode(), value.encode()) for name, value in HEADERS.items())
                message["headers"] = [*headers, *(each for each in added if each[0] not in present)]
            await send(message)

        await app(scope, receive, send_with_headers)

    return serve


def _api_of(request: Request, session: Session) -> UserAPI:
    return UserAPI(request.scope[SERVER], session.credentials, request.scope)


def _add_screen(
    ui: FastAPI, screen: Screen, sealer: Sealer, clock: Clock, planners: Planners, *, takes_agents: bool
) -> None:
    async def to_page(request: Request, session: Session) -> Page:
        api = _api_of(request, session)
        await api.charge()
        return Page(
            api,
            request.url.path,
            request.path_params,
            dict(request.query_params),
            clock.now(),
            planners,
            session.user,
            takes_agents=takes_agents,
        )

    async def show(request: Request) -> Response:
        session = login.session_of(request, sealer)
        if session is None:
            return login.to_login(request)
        page = await to_page(request, session)
        if "text/event-stream" in request.headers.get("accept", ""):
            events = live.events(page.api, screen.watched(page), screen.pause_s, screen.poll_s)
            return StreamingResponse(events, media_type="text/event-stream")
        if screen.table is not None and page.query.get("export") in exports.TYPES:
            return await _export(request, screen, page, session)
        return await _show(request, screen, page, session)

    async def submit(request: Request) -> Response:
        session = login.session_of(request, sealer)
        if session is None:
            return login.to_login(request)
        if screen.act is None:
            raise HTTPException(405, "This page has no form")
        page = await to_page(request, session)
        form = await read_form(request, screen.form_bytes_max)
        if not is_genuine(request, session, form):
            text = "The form did not come from a page of this session."
            return _problem(request, session, 403, "Nothing was done", text)
        try:
            outcome = await screen.act(page, form)
        except Unauthorized:
            return login.to_login(request, is_over=True)
        except (ApiError, ConfigurationError) as error:
            status = error.code if isinstance(error, ApiError) else 422
            return await _show(request, screen, page, session, status, problem=problem_of(error), form=form)
        if isinstance(outcome, str):
            return RedirectResponse(outcome, 303)
        return await _show(request, screen, page, session, **{"form": form, **outcome})

    # Plain routes: FastAPI would examine the parameters of both functions, for a quarter of a millisecond per screen.
    for method, answer in (("GET", show), ("POST", submit)):
        route = Route(screen.path, answer, methods=[method])
        route.methods = {method}  # without HEAD, which would open streams that nobody reads
        ui.router.routes.append(route)


async def _export(request: Request, screen: Screen, page: Page, session: Session) -> Response:
    """Return the list of a screen as a file."""
    assert screen.table is not None
    try:
        table = await screen.table(page)
    except Unauthorized:
        return login.to_login(request, is_over=True)
    except (ApiError, ConfigurationError) as error:
        status = error.code if isinstance(error, ApiError) else 400
        return _problem(request, session, status, "The list cannot be exported", problem_of(error))
    format_ = page.query["export"]
    headers = {"content-disposition": f'attachment; filename="{table.file}.{format_}"'}
    content = await in_thread(partial(exports.to_file, table, format_))
    return Response(content, media_type=exports.TYPES[format_], headers=headers)


async def _show(
    request: Request, screen: Screen, page: Page, session: Session, status: int = 200, **more: Any
) -> Response:
    """Return the page of a screen, or one that says why it cannot be shown."""
    try:
        found = await screen.load(page)
    except Unauthorized:
        return login.to_login(request, is_over=True)
    except ConfigurationError as error:
        return _problem(request, session, 400, "That is not possible", problem_of(error))
    except ApiError as error:
        titles = {403: "You lack the permission for this page", 404: "It does not exist"}
        title = titles.get(error.code, "The control plane could not answer")
        return _problem(request, session, error.code, title, problem_of(error))
    variables = {"page": page, "screen": screen, **_frame(request, session), **found, **more}
    answer = render(screen.template, status, screen.templates, **variables)
    if screen.styles_itself:
        answer.headers.update(STYLED_POLICY)
    return answer


def _frame(request: Request, session: Session | None) -> Mapping[str, Any]:
    """Return the variables of the frame around every page."""
    return {"session": session, "screens": request.app.state.listed}


def _problem(request: Request, session: Session | None, status: int, title: str, text: str) -> Response:
    return render("problem.html", status, title=title, text=text, screen=None, **_frame(request, session))


def _add_static(ui: FastAPI) -> None:
    @ui.get("/ui/static/{name}")
    async def static(name: str) -> Response:
        found = static_file(name)
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"cache-control": _STATIC_AGE})
