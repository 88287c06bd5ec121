"""Questions instead of objects: access reviews, who-am-I, token reviews, and tokens for ServiceAccounts.

These resources are answered and never stored: authorization.k8s.io and authentication.k8s.io, and
`serviceaccounts/NAME/token`. The answers come from the authorizer's index and the authenticator.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

import orjson

from federation.base import errors
from federation.base.clock import Clock, to_rfc3339
from federation.base.errors import BadRequest, Conflict, NotFound
from federation.registry.options import WriteOptions
from federation.registry.registry import Registry
from federation.registry.schema.builtin import builtin_schema
from federation.registry.schema.defaulting import prune
from federation.server.authn import Authenticator
from federation.server.discovery import VIRTUAL
from federation.server.identity import Attributes, Decision, User
from federation.server.rules import Rule

Object = dict[str, Any]
EXPIRES_S_MIN, EXPIRES_S_MAX, EXPIRES_S_DEFAULT = 600, 1 << 32, 3600
_EXPIRES_S_LIMIT = 365 * 86400
"""The longest life that we give, whatever is asked for."""
_KINDS = {(group, served.plural): served.kind for (group, _), kinds in VIRTUAL.items() for served in kinds}


class Authorizer(Protocol):
    """What the server asks about permissions."""

    @property
    def has_synced(self) -> bool:
        """Whether answers are complete."""
        ...

    async def wait_synced(self) -> None:
        """Return when answers are complete."""
        ...

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether the user may do this."""
        ...

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """Return everything that the user may do in a namespace."""
        ...

    def role_rules(self, kind: str, namespace: str, name: str) -> list[Rule]:
        """Return a role's rules."""
        ...


class Reviews:
    """Answers POSTs to the virtual resources."""

    def __init__(self, registry: Registry, authenticator: Authenticator, authorizer: Authorizer, clock: Clock) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._handlers: dict[tuple[str, str], Callable[[User, str, Object], Awaitable[Object]]] = {
            ("authentication.k8s.io", "selfsubjectreviews"): self._who_am_i,
            ("authentication.k8s.io", "tokenreviews"): self._token_review,
            ("authorization.k8s.io", "selfsubjectaccessreviews"): self._self_access,
            ("authorization.k8s.io", "subjectaccessreviews"): self._access,
            ("authorization.k8s.io", "localsubjectaccessreviews"): self._access,
            ("authorization.k8s.io", "selfsubjectrulesreviews"): self._rules,
        }

    def has(self, group: str, version: str, plural: str) -> bool:
        """Return whether this is one of the virtual resources."""
        return version == "v1" and (group, plural) in self._handlers

    async def create(
        self, user: User, group: str, plural: str, namespace: str, obj: Object, options: WriteOptions
    ) -> Object:
        """Return the review with its status filled; BadRequest when it cannot be read.

        Unknown fields are refused when the options say Strict, and warned of otherwise.
        """
        spec = obj.get("spec")
        if not isinstance(spec, (dict, type(None))):
            raise BadRequest("spec must be an object")
        kind = _KINDS[group, plural]
        unknown = prune(builtin_schema(group, "v1", kind), obj)
        if unknown and options.field_validation != "Ignore":
            texts = [f'unknown field "{path}"' for path in unknown]
            if options.field_validation == "Strict":
                listed = ", ".join(texts)
                raise BadRequest(
                    f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: {listed}'
                )
            options.warnings.extend(texts)
        return await self._handlers[group, plural](user, namespace, {**obj, "spec": spec or {}})

    async def issue_token(self, namespace: str, name: str, obj: Object) -> Object:
        """Answer a TokenRequest for a ServiceAccount; NotFound, Invalid, Conflict (bound object is another one)."""
        tokens = self._authenticator.tokens
        if tokens is None:
            raise NotFound("the server could not find the requested resource")
        spec = _mapping(obj, "spec")
        audiences, wanted = _strings(spec, "audiences"), spec.get("expirationSeconds")
        if wanted is None:
            wanted = EXPIRES_S_DEFAULT
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            raise BadRequest("spec.expirationSeconds must be an integer")
        if not EXPIRES_S_MIN <= wanted <= EXPIRES_S_MAX:
            problem = (
                "may not specify a duration less than 10 minutes"
                if wanted < EXPIRES_S_MIN
                else "may not specify a duration larger than 2^32 seconds"
            )
            cause = errors.cause("FieldValueInvalid", f"Invalid value: {wanted}: {problem}", "spec.expirationSeconds")
            raise errors.invalid("TokenRequest", "authentication.k8s.io", name, [cause])
        account = await self._find("serviceaccounts", namespace, name)
        bound = await self._bound_object(namespace, spec.get("boundObjectRef"))
        expires_s = min(wanted, _EXPIRES_S_LIMIT)
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
                "expirationSeconds": wanted,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": to_rfc3339(now + timedelta(seconds=expires_s))},
        }

    async def _bound_object(self, namespace: str, reference: Any) -> tuple[str, str, str] | None:
        if reference is None:
            return None
        if not isinstance(reference, dict) or reference.get("kind") not in ("Node", "Pod", "Secret"):
            raise BadRequest("cannot bind token for a ServiceAccount to this kind of object: use Node, Pod or Secret")
        kind, name = reference["kind"], str(reference.get("name", ""))
        found = await self._find(f"{kind.lower()}s", "" if kind == "Node" else namespace, name)
        uid: str = found["metadata"]["uid"]
        if reference.get("uid") not in (None, "", uid):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference '
                f"({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        return kind, name, uid

    async def _find(self, plural: str, namespace: str, name: str) -> Object:
        info = self._registry.kinds.lookup("", "v1", plural)
        found: Object = orjson.loads(await self._registry.get(info, namespace, name))
        return found

    async def _who_am_i(self, user: User, namespace: str, review: Object) -> Object:
        del namespace, review
        return _answer("authentication.k8s.io", "SelfSubjectReview", None, {"userInfo": user.to_info()})

    async def _token_review(self, user: User, namespace: str, review: Object) -> Object:
        del user, namespace
        token = review["spec"].get("token")
        if not isinstance(token, str) or not token:
            raise BadRequest("token is required for TokenReview in authentication")
        audiences = _strings(review["spec"], "audiences")
        reviewed = await self._authenticator.review(token, audiences)
        status: Object = {"user": {}, "error": "[invalid bearer token, unknown]"}
        if reviewed is not None:
            status = {"authenticated": True, "user": reviewed.user.to_info()}
            if reviewed.audiences:
                status["audiences"] = list(reviewed.audiences)
        return _answer("authentication.k8s.io", "TokenReview", review["spec"], status)

    async def _self_access(self, user: User, namespace: str, review: Object) -> Object:
        del namespace
        return self._decide("SelfSubjectAccessReview", user, review["spec"])

    async def _access(self, user: User, namespace: str, review: Object) -> Object:
        del user
        spec = review["spec"]
        name, groups = spec.get("user") or "", tuple(_strings(spec, "groups"))
        if not isinstance(name, str) or not (name or groups):
            cause = errors.cause(
                "FieldValueInvalid", 'Invalid value: "": at least one of user or group must be specified', "spec.user"
            )
            raise errors.invalid("SubjectAccessReview", "authorization.k8s.io", "", [cause])
        if namespace and (_mapping(spec, "resourceAttributes").get("namespace") or "") != namespace:
            raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
        kind = "LocalSubjectAccessReview" if namespace else "SubjectAccessReview"
        return self._decide(kind, User(name, groups), spec)

    def _decide(self, kind: str, user: User, spec: Object) -> Object:
        decision = self._authorizer.authorize(user, _to_attributes(kind, spec))
        status: Object = {"allowed": decision.is_allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return _answer("authorization.k8s.io", kind, spec, status)

    async def _rules(self, user: User, namespace: str, review: Object) -> Object:
        del namespace
        wanted = review["spec"].get("namespace")
        if not isinstance(wanted, str) or not wanted:
            raise BadRequest("no namespace on request")
        shown = [rule.to_object() for rule in self._authorizer.rules_of(user, wanted)]
        status = {
            "resourceRules": [rule for rule in shown if "resources" in rule],
            "nonResourceRules": [rule for rule in shown if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return _answer("authorization.k8s.io", "SelfSubjectRulesReview", review["spec"], status)


def _answer(group: str, kind: str, spec: Object | None, status: Object) -> Object:
    answer: Object = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": {"creationTimestamp": None}}
    if spec is not None:
        answer["spec"] = spec
    answer["status"] = status
    return answer


def _to_attributes(kind: str, spec: Mapping[str, Any]) -> Attributes:
    resource, path = _mapping(spec, "resourceAttributes"), _mapping(spec, "nonResourceAttributes")
    if bool(resource) == bool(path):
        cause = errors.cause(
            "FieldValueInvalid",
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            "spec.resourceAttributes",
        )
        raise errors.invalid(kind, "authorization.k8s.io", "", [cause])
    if path:
        return Attributes(str(path.get("verb", "")), path=str(path.get("path") or "/"))
    return Attributes(
        verb=str(resource.get("verb", "")),
        group=str(resource.get("group") or ""),
        version=str(resource.get("version") or ""),
        resource=str(resource.get("resource") or ""),
        subresource=str(resource.get("subresource") or ""),
        namespace=str(resource.get("namespace") or ""),
        name=str(resource.get("name") or ""),
    )


def _mapping(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = spec.get(name)
    if not isinstance(value, (dict, type(None))):
        raise BadRequest(f"{'' if name == 'spec' else 'spec.'}{name} must be an object")
    return value or {}


def _strings(spec: Mapping[str, Any], name: str) -> list[str]:
    values = spec.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadRequest(f"spec.{name} must be a list of strings")
    return values
