"""Health endpoints as in kube-apiserver: `/livez`, `/readyz`, `/healthz`, single checks below them, and `?verbose`.

A check is an async function that returns "" or the reason of the failure. Checks run concurrently with a deadline each,
so a hanging database makes the server "not ready" instead of hanging the request. Warnings are shown in the verbose
readiness only and do not make the server unready.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qs

from federation.apimachinery.errors import FederationError, NotFound
from federation.apiserver.http.asgi import Header, Request

Check = Callable[[], Awaitable[str]]
CHECK_S_MAX = 3.0
_TEXT = b"text/plain; charset=utf-8"
_HEADERS: tuple[Header, ...] = ((b"x-content-type-options", b"nosniff"),)
ENDPOINTS = frozenset({"livez", "readyz", "healthz"})


class Health:
    """Answers the health endpoints. Liveness checks only that this process responds, readiness runs every check."""

    def __init__(self, readiness: Mapping[str, Check], warnings: Callable[[], Sequence[str]] = tuple) -> None:
        self._readiness = dict(readiness)
        self._warnings = warnings

    async def respond(self, request: Request) -> None:
        """Answer `/livez`, `/readyz`, `/healthz` and `/readyz/CHECK`: 200, or 500 with the failed checks."""
        endpoint, _, name = request.path.strip("/").partition("/")
        checks: dict[str, Check] = {"ping": _ping}
        if endpoint != "livez":
            checks |= self._readiness
        if name:
            if name not in checks:
                raise NotFound(f"there is no health check {name!r}")
            checks = {name: checks[name]}
        query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        excluded = set(query.get("exclude", ()))
        results = await _run_checks({key: check for key, check in checks.items() if key not in excluded})
        failed = {key: reason for key, reason in results.items() if reason}
        status = 500 if failed else 200
        if not failed and "verbose" not in query:
            await request.respond(200, b"ok", content_type=_TEXT, headers=_HEADERS)
            return
        lines = [f"[-]{key} failed: {reason}" if reason else f"[+]{key} ok" for key, reason in results.items()]
        lines += [f"[+]{key} excluded: ok" for key in sorted(excluded & checks.keys())]
        if endpoint == "readyz" and not name:
            lines += [f"[!]warning: {warning}" for warning in self._warnings()]
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        await request.respond(status, ("\n".join(lines) + "\n").encode(), content_type=_TEXT, headers=_HEADERS)


async def _ping() -> str:
    return ""


async def _run_checks(checks: Mapping[str, Check]) -> dict[str, str]:
    reasons = await asyncio.gather(*(_run_check(check) for check in checks.values()))
    return dict(zip(checks, reasons, strict=True))


async def _run_check(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_S_MAX):
            return await check()
    except TimeoutError:
        return f"no answer within {CHECK_S_MAX:g} s"
    except FederationError as error:
        return str(error)
