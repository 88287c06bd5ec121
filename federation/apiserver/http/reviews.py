"""Reviews: access reviews, rules reviews, self subject reviews and token reviews. They are answered, never stored.

They belong to authorization.k8s.io and authentication.k8s.io; the authorizer and the authenticator decide.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery import errors
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.authorization import Authorizer
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.bodies import BodyLimits, mapping_field, read_object, string_list_field
from federation.apiserver.http.negotiation import negotiate_object
from federation.apiserver.http.parameters import to_write_options
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.registry.discovery import REVIEWS
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.apiserver.semantics.schema.defaulting import prune
from federation.apiserver.verbs.requestoptions import WriteOptions

Object = dict[str, Any]
_KINDS = {
    (group, resource.plural): resource.kind for (group, _), resources in REVIEWS.items() for resource in resources
}


class Reviews:
    """Answers POSTs of reviews."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer, *, limits: BodyLimits) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits

    def handles(self, path: ResourcePath) -> bool:
        """Return whether the path is that of a review."""
        return bool(path.group) and path.version == "v1" and (path.group, path.plural) in _KINDS

    async def serve(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Answer with the review and its status."""
        if verb != "create" or path.name:
            raise method_not_allowed()
        obj, _ = await read_object(request, self._limits)
        representation = negotiate_object(request.headers.get(b"accept", b""))
        options = to_write_options(request.query, "", request.warnings, "CreateOptions")
        value = await self._review(request.user, path, obj, options)
        await request.respond_json(201, value, content_type=representation.content_type)

    async def _review(self, user: User, path: ResourcePath, obj: Object, options: WriteOptions) -> Object:
        """Return the review with its status; unknown fields are refused under Strict and otherwise add warnings."""
        spec = obj.get("spec")
        if not isinstance(spec, (dict, type(None))):
            raise BadRequest("spec must be an object")
        kind = _KINDS[path.group, path.plural]
        unknown = prune(builtin_schema(path.group, "v1", kind), obj)
        if unknown and options.field_validation != "Ignore":
            texts = [f'unknown field "{field}"' for field in unknown]
            if options.field_validation == "Strict":
                listed = ", ".join(texts)
                raise BadRequest(
                    f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: {listed}'
                )
            options.warnings.extend(texts)
        spec = spec or {}
        match kind:
            case "SelfSubjectReview":
                status: Object = {"userInfo": user.to_info()}
            case "TokenReview":
                status = await self._review_token(spec)
            case "SelfSubjectRulesReview":
                status = self._review_rules(user, spec)
            case "SelfSubjectAccessReview":
                status = self._review_access(kind, user, spec)
            case _:
                kind = "LocalSubjectAccessReview" if path.namespace else "SubjectAccessReview"
                status = self._review_access(kind, _to_subject(spec, path.namespace), spec)
        review: Object = {"kind": kind, "apiVersion": f"{path.group}/v1", "metadata": {"creationTimestamp": None}}
        if kind != "SelfSubjectReview":
            review["spec"] = spec
        review["status"] = status
        return review

    async def _review_token(self, spec: Object) -> Object:
        token = spec.get("token")
        if not isinstance(token, str) or not token:
            raise BadRequest("token is required for TokenReview in authentication")
        authenticated = await self._authenticator.review(token, string_list_field(spec, "audiences"))
        if authenticated is None:
            return {"user": {}, "error": "[invalid bearer token, unknown]"}
        status: Object = {"authenticated": True, "user": authenticated.user.to_info()}
        if authenticated.audiences:
            status["audiences"] = list(authenticated.audiences)
        return status

    def _review_access(self, kind: str, user: User, spec: Object) -> Object:
        decision = self._authorizer.authorize(user, _to_attributes(kind, spec))
        status: Object = {"allowed": decision.is_allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _review_rules(self, user: User, spec: Object) -> Object:
        namespace = spec.get("namespace")
        if not isinstance(namespace, str) or not namespace:
            raise BadRequest("no namespace on request")
        rules = [rule.to_object() for rule in self._authorizer.rules_of(user, namespace)]
        return {
            "resourceRules": [rule for rule in rules if "resources" in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }


def _to_subject(spec: Object, namespace: str) -> User:
    """Return the user of a SubjectAccessReview, or of a LocalSubjectAccessReview in `namespace`."""
    name, groups = spec.get("user") or "", tuple(string_list_field(spec, "groups"))
    if not isinstance(name, str) or not (name or groups):
        cause = errors.cause(
            "FieldValueInvalid", 'Invalid value: "": at least one of user or group must be specified', "spec.user"
        )
        raise errors.invalid("SubjectAccessReview", "authorization.k8s.io", "", [cause])
    if namespace and (mapping_field(spec, "resourceAttributes").get("namespace") or "") != namespace:
        raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return User(name, groups)


def _to_attributes(kind: str, spec: Mapping[str, Any]) -> Attributes:
    resource, path = mapping_field(spec, "resourceAttributes"), mapping_field(spec, "nonResourceAttributes")
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
