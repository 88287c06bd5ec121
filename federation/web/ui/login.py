"""Log-in and log-out of the web UI: by bearer token, client certificate, one-time link, and OIDC (`oidclogin.py`).

A log-in asks the API who the user is, with the given credentials, and answers with a new session in a cookie that
scripts cannot read and other sites cannot send. Requests that change something must come from our own pages: the
browser says so, and forms of a session have its key. After a log-in the browser goes on only to pages of the UI.
"""

from typing import Any
from urllib.parse import quote, unquote, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from federation.apimachinery.errors import ApiError, Unauthorized
from federation.apiserver.http.nonresource import SERVER
from federation.web.requests import json_response
from federation.web.ui.credentials import SEALED_BYTES_MAX, SESSION_S, Credentials, Sealer, Session
from federation.web.ui.forms import is_genuine, is_own_page, read_form
from federation.web.ui.links import OneTimeLinks
from federation.web.ui.oidclogin import ATTEMPT_S, CALLBACK, Attempt, LoginRefused, OIDCLogin
from federation.web.ui.rendering import render
from federation.web.ui.userapi import UserAPI

COOKIE = "__Host-federation-session"
ATTEMPT_COOKIE = "__Host-federation-login"
_ATTEMPT = "oidc"
_START = "/ui/overview"
_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW_BODY = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def session_of(request: Request, sealer: Sealer) -> Session | None:
    """Return the session of a request, None without a valid one."""
    sealed = request.cookies.get(COOKIE)
    return sealer.open(sealed) if sealed else None


def to_login(request: Request, *, is_over: bool = False) -> Response:
    """Return the way to the log-in page and back here afterwards; `is_over` ends a session that was refused."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    address = f"/ui/login?next={quote(here, safe='')}" + ("&ended=1" if is_over else "")
    if "text/event-stream" in request.headers.get("accept", ""):
        response = Response(status_code=204)  # ends the stream; the next request of the page leads to the log-in
    elif "hx-request" in request.headers:
        response = Response(status_code=200, headers={"hx-redirect": address})
    else:
        response = RedirectResponse(address, 303)
    if is_over:
        response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")
    return response


def safe_next(address: str) -> str:
    """Return an address within the UI: the given one, or the start page for anything else."""
    parts = urlsplit(address)
    is_ours = (
        not parts.scheme and not parts.netloc and parts.path.startswith("/ui/") and ".." not in unquote(parts.path)
    )
    is_plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if is_ours and is_plain and not address.startswith("//") else _START


def add_oidc_routes(ui: FastAPI, sealer: Sealer, oidc: OIDCLogin) -> None:
    """Serve log-in by redirect to an OIDC provider."""

    @ui.get("/ui/oidc/login")
    async def begin(request: Request) -> Response:
        target = safe_next(request.query_params.get("next", ""))
        try:
            attempt, address = await oidc.begin(request, target)
        except ApiError as error:
            return _form(request, target, error.message, error.code)
        response = RedirectResponse(address, 303)
        # The provider's answer is a navigation from another site, so this cookie cannot be strict.
        sealed = sealer.seal_value(_ATTEMPT, attempt.to_json())
        response.set_cookie(ATTEMPT_COOKIE, sealed, max_age=ATTEMPT_S, secure=True, httponly=True, samesite="lax")
        return response

    @ui.get(CALLBACK)
    async def finish(request: Request) -> Response:
        found = sealer.open_value(_ATTEMPT, request.cookies.get(ATTEMPT_COOKIE, ""), ATTEMPT_S)
        if found is None:
            problem = "This log-in was not started in this browser, or it took too long. Start again."
            return _form(request, _START, problem, 403)
        attempt = Attempt(**found)
        try:
            credentials = Credentials(token=await oidc.finish(request, attempt))
            user = await _user_of(request, credentials)
            oidc.check_nonce(credentials.token, attempt)
            response = _start(request, sealer, user, credentials, attempt.target, is_foreign=True)
        except LoginRefused as error:
            response = _form(request, attempt.target, error.message, 403)
        except Unauthorized:
            problem = "The server does not accept the identity provider's token; its log has the reason."
            response = _form(request, attempt.target, problem, 403)
        except ApiError as error:
            response = _form(request, attempt.target, error.message, error.code)
        response.delete_cookie(ATTEMPT_COOKIE, secure=True, httponly=True, samesite="lax")
        return response


def add_routes(ui: FastAPI, sealer: Sealer, links: OneTimeLinks, oidc: OIDCLogin | None) -> None:
    """Serve log-in, log-out and one-time links."""
    ui.state.provider = oidc.provider if oidc is not None else ""
    if oidc is not None:
        add_oidc_routes(ui, sealer, oidc)

    @ui.get("/ui/login")
    async def show(request: Request) -> Response:
        query = request.query_params
        problem = "Your session has ended. Log in again." if query.get("ended") else ""
        return _form(request, safe_next(query.get("next", "")), problem, 200)

    @ui.post("/ui/login")
    async def log_in(request: Request) -> Response:
        form = await read_form(request)
        target = safe_next(form.get("next", ""))
        if not is_own_page(request):
            return _form(request, target, "This form was sent by another site. Log in here.", 403)
        token = form.get("token", "").strip()
        peer = request_peer(request)
        if form.get("by") == "certificate" and peer is not None:
            credentials = Credentials(peer=peer)
        elif token and token.isascii() and token.isprintable():
            credentials = Credentials(token=token)
        else:
            return _form(request, target, "Enter a token.", 400)
        try:
            user = await _user_of(request, credentials)
        except Unauthorized:
            return _form(request, target, "The server does not accept this token. It may have expired.", 401)
        except ApiError as error:
            return _form(request, target, f"The server cannot check it now: {error.message}", error.code)
        return _start(request, sealer, user, credentials, target)

    @ui.post("/ui/logout")
    async def log_out(request: Request) -> Response:
        session, form = session_of(request, sealer), await read_form(request)
        if session is not None and not is_genuine(request, session, form):
            return _form(request, _START, "This form was sent by another site. You are still logged in.", 403)
        response = RedirectResponse("/ui/login", 303)
        response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")
        return response

    @ui.post("/ui/links")
    async def create_link(request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        peer = request_peer(request)
        is_token = peer is None and scheme.lower() == "bearer"
        credentials = Credentials(token.strip() if is_token else "", peer)
        try:
            if not (credentials.token or credentials.peer) or "origin" in request.headers:
                raise Unauthorized("Unauthorized: a link needs a bearer token or a client certificate, and no browser")
            user = await _user_of(request, credentials)
            code = links.create(user, credentials)
        except ApiError as error:
            return json_response(error.code, error.to_status())
        return json_response(201, {"kind": "LoginLink", "user": user, "path": f"/ui/link#{code}"})

    @ui.get("/ui/link")
    async def ask() -> Response:
        # A link is redeemed by a button: programs that look at links in messages do not use it up. Its code is in the
        # fragment, which browsers do not send, so that no log has it.
        return render("link.html", session=None, screen=None, screens=[])

    @ui.post("/ui/link")
    async def redeem(request: Request) -> Response:
        form = await read_form(request)
        redeemed = links.redeem(form.get("code", "")) if is_own_page(request) else None
        if redeemed is None:
            return _form(request, _START, "The link was used already, or it is too old. Make a new one.", 403)
        return _start(request, sealer, *redeemed, _START)


def request_peer(request: Request) -> Any:
    """Return the subject of the connection's client certificate, None without one."""
    return (request.scope.get("state") or {}).get("peer")


def _form(request: Request, target: str, problem: str, status: int) -> Response:
    certificate = request_peer(request)
    name = certificate.user if certificate is not None else ""
    variables = {"next": target, "problem": problem, "certificate": name, "provider": request.app.state.provider}
    return render("login.html", status, session=None, screen=None, screens=[], **variables)


def _start(
    request: Request, sealer: Sealer, user: str, credentials: Credentials, target: str, *, is_foreign: bool = False
) -> Response:
    """Return the way to the first page of a new session; `is_foreign`: the navigation began on another site."""
    sealed = sealer.seal(user, credentials)
    if len(sealed) > SEALED_BYTES_MAX:
        return _form(request, target, "The token is too long for a session; use a shorter one.", 400)
    # Browsers send a strict cookie only with navigations that begin on this site, so a page of ours begins one.
    response: Response
    if is_foreign:
        response = render("continue.html", session=None, screen=None, screens=[], target=target)
    else:
        response = RedirectResponse(target, 303)
    response.set_cookie(COOKIE, sealed, max_age=SESSION_S, secure=True, httponly=True, samesite="strict")
    return response


async def _user_of(request: Request, credentials: Credentials) -> str:
    """Return the name of the user with these credentials; Unauthorized when the server does not accept them."""
    api = UserAPI(request.scope[SERVER], credentials, request.scope)
    review = await api.post(_REVIEW, _REVIEW_BODY)
    return str(review["status"]["userInfo"]["username"])
