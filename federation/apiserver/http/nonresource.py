"""Non-resource paths: discovery, OpenAPI, health, metrics, version, the token issuer's keys, and mounted ASGI apps.

`app.py` authenticates and authorizes. All paths but those of mounted apps are read-only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from federation.apimachinery import metrics
from federation.apimachinery.errors import not_served
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.http.asgi import ASGIApp, Request
from federation.apiserver.http.discovery import Discovery
from federation.apiserver.http.health import ENDPOINTS, Check, Health
from federation.apiserver.http.openapi import Forward, OpenAPI
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.registry.apiservices import APIServices
from federation.apiserver.registry.discovery import version_info
from federation.apiserver.semantics.kinds.kinds import Kinds

PUBLIC = ENDPOINTS | {"version"}
"""First segments of paths that need no credentials."""
AUTHORIZE = "federation.authorize"
"""Key in the ASGI scope of a mounted app: `await scope[AUTHORIZE](required)` raises Forbidden unless the user may get
the request's path or may do everything in `required`, a sequence of Attributes. With `is_path_enough=False` the path is
enough only when nothing is required."""
SERVER = "federation.server"
"""Key in the ASGI scope of a public mounted app: the server's own ASGI app. Requests that the mounted app sends to it
with a user's credentials are authenticated, authorized, queued and audited as if they came over the network."""
HOLD = "federation.hold"
"""Key in the ASGI scope of a public mounted app: `await scope[HOLD](peer, authorization, path, end)` counts a stream
against the user with these credentials until `close()` of the result; `end` is called when they are refused later.
Unauthorized, TooManyRequests."""
CHARGE = "federation.charge"
"""Key in the ASGI scope of a public mounted app: `await scope[CHARGE](peer, authorization)` counts what the request
computes against the user with these credentials, and waits while he has to rest. Unauthorized, TooManyRequests."""
NAMESPACES = "federation.namespaces"
"""Key in the ASGI scope of a mounted app: `scope[NAMESPACES]()` returns the namespaces in which the user has a role."""
USER = "federation.user"
"""Key in the ASGI scope of a mounted app: the authenticated `User`, for paths that the app authorizes itself."""
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_INDEX = (
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)


@dataclass(frozen=True, slots=True)
class Mount:
    """An ASGI app served below `/NAME/`; the server authenticates, queues and audits its requests."""

    app: ASGIApp
    index: tuple[str, ...] = ()
    """Paths to list in the response to `GET /`."""
    authorizes: frozenset[str] = frozenset()
    """Paths whose handlers call `scope[AUTHORIZE]`, because the required permissions depend on the query. Every other
    path needs the permission on its non-resource URL."""
    has_login: bool = False
    """Whether requests need no credentials here, because the app has a log-in of its own (see `SERVER`)."""
    public: frozenset[str] = frozenset()
    """Those of them that need no credentials."""
    streams: frozenset[str] = frozenset()
    """Those of them whose requests last: they are counted as watches and occupy no seat."""


class Mounts(Mapping[str, Mount]):
    """Apps by the first segment of their paths. Each is made for its first request: a start imports none of them."""

    def __init__(self) -> None:
        self._makers: dict[str, Callable[[], Mount]] = {}
        self._made: dict[str, Mount] = {}

    def add(self, name: str, make: Callable[[], Mount]) -> None:
        """Serve what `make` returns."""
        self._makers[name] = make

    def __getitem__(self, name: str) -> Mount:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class NonResourcePaths:
    """Serves the paths of one server that name no resource."""

    def __init__(
        self,
        kinds: Kinds,
        apis: APIServices,
        forward: Forward,
        *,
        readiness: Mapping[str, Check],
        warnings: Callable[[], Sequence[str]],
        mounts: Mapping[str, Mount],
        tokens: ServiceAccountTokens | None,
    ) -> None:
        self._discovery = Discovery(kinds, apis)
        self._openapi = OpenAPI(kinds, apis, forward)
        self._health = Health(readiness, warnings)
        self._mounts = mounts
        self._tokens = tokens

    def authorizes(self, path: str, root: str) -> bool:
        """Return whether a mounted app authorizes requests of this path itself."""
        mount = self._mounts.get(root)
        return mount is not None and path in mount.authorizes

    def has_login(self, root: str) -> bool:
        """Return whether paths whose first segment is `root` belong to an app with a log-in of its own."""
        mount = self._mounts.get(root)
        return mount is not None and mount.has_login

    def is_public(self, path: str, root: str) -> bool:
        """Return whether a mounted app serves this path without credentials."""
        mount = self._mounts.get(root)
        return mount is not None and path in mount.public

    def is_stream(self, path: str, root: str) -> bool:
        """Return whether a mounted app serves requests of this path that last."""
        mount = self._mounts.get(root)
        return mount is not None and path in mount.streams

    async def serve(self, request: Request, root: str) -> None:
        """Answer a path whose first segment is `root`; NotFound or MethodNotAllowed when it is not served."""
        if (mount := self._mounts.get(root)) is not None:
            request.status = 200  # for metrics and audit: the app sends its own
            await mount.app(request.scope, request.receive, request.send)
            return
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        match root:
            case "api" | "apis":
                await self._discovery.respond(request)
            case "openapi":
                await self._openapi.respond(request)
            case "livez" | "readyz" | "healthz":
                await self._health.respond(request)
            case "version":
                await request.respond_json(200, version_info())
            case "metrics":
                await request.respond(200, await metrics.to_text(request.query.get("name[]", "")), content_type=_TEXT)
            case "openid" | ".well-known":
                await self._respond_issuer(request)
            case "" if request.path == "/":
                mounted = (path for mount in self._mounts.values() for path in mount.index)
                await request.respond_json(200, {"paths": sorted({*_INDEX, *mounted})})
            case _:
                raise not_served()

    async def _respond_issuer(self, request: Request) -> None:
        """Answer with the key set or the OpenID configuration, for verifiers of ServiceAccount tokens."""
        tokens = self._tokens
        if tokens is not None and request.path == "/openid/v1/jwks":
            await request.respond_json(200, tokens.jwks(), content_type=b"application/jwk-set+json")
        elif tokens is not None and request.path == "/.well-known/openid-configuration":
            await request.respond_json(
                200,
                {
                    "issuer": tokens.issuer,
                    "jwks_uri": f"{tokens.issuer}/openid/v1/jwks",
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["ES256"],
                },
            )
        else:
            raise not_served()
