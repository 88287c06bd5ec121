"""TokenRequest: `POST serviceaccounts/NAME/token` issues a token for a ServiceAccount."""

from datetime import timedelta
from typing import Any

import orjson

from federation.apimachinery import errors
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import BadRequest, Conflict, not_served
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.bodies import BodyLimits, mapping_field, read_object, string_list_field
from federation.apiserver.http.negotiation import negotiate_object
from federation.apiserver.http.parameters import to_write_options
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.registry.registry import Registry

Object = dict[str, Any]
EXPIRES_S_MIN, EXPIRES_S_MAX, EXPIRES_S_DEFAULT = 600, 1 << 32, 3600
_ISSUED_S_MAX = 365 * 86400
"""The longest validity of a token; a longer one that is requested is shortened."""


class TokenRequests:
    """Answers TokenRequests; `tokens` None means that this server issues none."""

    def __init__(
        self, registry: Registry, tokens: ServiceAccountTokens | None, *, clock: Clock, limits: BodyLimits
    ) -> None:
        self._registry = registry
        self._tokens = tokens
        self._clock = clock
        self._limits = limits

    @staticmethod
    def handles(path: ResourcePath) -> bool:
        """Return whether the path is the token subresource of a ServiceAccount."""
        return path.subresource == "token" and path.plural == "serviceaccounts" and not path.group

    async def serve(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Answer with the TokenRequest and its token."""
        if verb != "create" or not path.namespace:
            raise method_not_allowed()
        obj, _ = await read_object(request, self._limits)
        representation = negotiate_object(request.headers.get(b"accept", b""))
        value = await self._issue(request, path.namespace, path.name, obj)
        await request.respond_json(201, value, content_type=representation.content_type)

    async def _issue(self, request: Request, namespace: str, name: str, obj: Object) -> Object:
        """Return the completed TokenRequest; NotFound, Invalid, or Conflict (bound object with another uid)."""
        tokens = self._tokens
        if tokens is None:
            raise not_served()
        account = await self._get("serviceaccounts", namespace, name)
        obj = await self._admitted(request, account, obj)
        spec = mapping_field(obj, "spec")
        audiences = string_list_field(spec, "audiences")
        requested_s = _requested_s(spec, name)
        bound = await self._bound_object(namespace, spec.get("boundObjectRef"))
        expires_s = min(requested_s, _ISSUED_S_MAX)
        now = self._clock.now()
        token = tokens.issue(
            namespace=namespace,
            name=name,
            uid=account["metadata"]["uid"],
            audiences=audiences,
            now=now,
            expires_s=expires_s,
            bound=bound,
        )
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": to_rfc3339(now)},
            "spec": {
                "audiences": audiences or [tokens.issuer],
                "expirationSeconds": requested_s,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": to_rfc3339(now + timedelta(seconds=expires_s))},
        }

    async def _admitted(self, request: Request, account: Object, obj: Object) -> Object:
        info = self._registry.kinds.lookup("", "v1", "serviceaccounts")
        options = to_write_options(
            request.query,
            request.header(b"user-agent"),
            request.warnings,
            "CreateOptions",
            request.user.to_info,
            request.audit_annotations,
        )
        posted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", **obj}
        return await self._registry.admit_posted(info, account, posted, options, subresource="token")

    async def _bound_object(self, namespace: str, reference: Any) -> tuple[str, str, str] | None:
        """Return kind, name and uid of the object that the token is bound to, None without one."""
        if reference is None:
            return None
        if not isinstance(reference, dict) or reference.get("kind") not in ("Node", "Pod", "Secret"):
            raise BadRequest("cannot bind token for a ServiceAccount to this kind of object: use Node, Pod or Secret")
        kind, name = reference["kind"], str(reference.get("name", ""))
        found = await self._get(f"{kind.lower()}s", "" if kind == "Node" else namespace, name)
        uid: str = found["metadata"]["uid"]
        if reference.get("uid") not in (None, "", uid):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference '
                f"({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        return kind, name, uid

    async def _get(self, plural: str, namespace: str, name: str) -> Object:
        info = self._registry.kinds.lookup("", "v1", plural)
        found: Object = orjson.loads(await self._registry.get(info, namespace, name))
        return found


def _requested_s(spec: Any, name: str) -> int:
    requested = spec.get("expirationSeconds")
    if requested is None:
        return EXPIRES_S_DEFAULT
    if not isinstance(requested, int) or isinstance(requested, bool):
        raise BadRequest("spec.expirationSeconds must be an integer")
    if EXPIRES_S_MIN <= requested <= EXPIRES_S_MAX:
        return requested
    problem = (
        "may not specify a duration less than 10 minutes"
        if requested < EXPIRES_S_MIN
        else "may not specify a duration larger than 2^32 seconds"
    )
    cause = errors.cause("FieldValueInvalid", f"Invalid value: {requested}: {problem}", "spec.expirationSeconds")
    raise errors.invalid("TokenRequest", "authentication.k8s.io", name, [cause])
