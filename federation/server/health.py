"""Health endpoints in kube-apiserver's form: `/livez`, `/readyz`, `/healthz`, one check each below them, `?verbose`.

A check is an async function that returns "" when all is well, or else the reason in a few words. Checks run side by
side with a deadline each, so that a hanging database makes the answer "not ready" instead of no answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs

from federation.base.errors import FederationError, NotFound
from federation.server.asgi import Header, Request

Check = Callable[[], Awaitable[str]]
CHECK_S_MAX = 3.0
_TEXT = b"text/plain; charset=utf-8"
_HEADERS: tuple[Header, ...] = ((b"x-content-type-options", b"nosniff"),)
ENDPOINTS = frozenset({"livez", "readyz", "healthz"})


class Health:
    """Answers the health endpoints. Liveness asks only whether this process answers, readiness asks every check."""

    def __init__(self, readiness: Mapping[str, Check]) -> None:
        self._readiness = dict(readiness)

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
        results = await _run({key: check for key, check in checks.items() if key not in excluded})
        failed = {key: reason for key, reason in results.items() if reason}
        status = 500 if failed else 200
        if not failed and "verbose" not in query:
            await request.respond(200, b"ok", content_type=_TEXT, headers=_HEADERS)
            return
        lines = [f"[-]{key} failed: {reason}" if reason else f"[+]{key} ok" for key, reason in results.items()]
        lines += [f"[+]{key} excluded: ok" for key in sorted(excluded & checks.keys())]
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        await request.respond(status, ("\n".join(lines) + "\n").encode(), content_type=_TEXT, headers=_HEADERS)


async def _ping() -> str:
    return ""


async def _run(checks: Mapping[str, Check]) -> dict[str, str]:
    reasons = await asyncio.gather(*(_ask(check) for check in checks.values()))
    return dict(zip(checks, reasons, strict=True))


async def _ask(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_S_MAX):
            return await check()
    except TimeoutError:
        return f"no answer within {CHECK_S_MAX:g} s"
    except FederationError as error:
        return str(error)
