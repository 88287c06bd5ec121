"""Answers to the host's admission reviews: the admission plugins of the embedded API server, behind webhooks.

A plugin decides about permissions and kinds without waiting. Behind a webhook each permission is a question to the
host. So a plugin is run with the answers that are known; what it lacks is asked for, all at once, and it is run again.
Its result counts when it lacked nothing. Plugins keep no state, which makes the repetition harmless.

Reviews fail closed: what is neither admitted nor denied is an error, and the failurePolicy of the webhook decides.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from federation.apimachinery.errors import ApiError, BadRequest, InternalError
from federation.apimachinery.jsonpatch import to_operations
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.plugins import AdmissionPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.auth.identity import User
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.hosting.access import HostAccess, to_user
from federation.hosting.hostkinds import HostKinds
from federation.hosting.webhookconfigurations import HOLD, MUTATE, VALIDATE, is_exempt

_API_VERSION = "admission.k8s.io/v1"
_RUNS_MAX = 8
"""Runs of a plugin for one request; each has more answers than the one before."""
Finalizers = Callable[[Resource, Object], tuple[str, ...]]
"""Returns the finalizers of ours that a new object gets."""


class HostAdmission:
    """Answers reviews by the path that they were sent to."""

    def __init__(
        self,
        plugins: Callable[["LookUp"], Sequence[AdmissionPlugin]],
        kinds: HostKinds,
        access: HostAccess,
        finalizers: Finalizers,
    ) -> None:
        self._look_up = LookUp(kinds)
        self._plugins: dict[str, list[AdmissionPlugin]] = {}
        for plugin in plugins(self._look_up):
            for name in plugin.resources:
                self._plugins.setdefault(name, []).append(plugin)
        self._kinds = kinds
        self._access = access
        self._finalizers = finalizers

    @property
    def resources(self) -> frozenset[str]:
        """The resources of all plugins, as `Resource.group_resource`."""
        return frozenset(self._plugins)

    async def answer(self, path: str, review: Any) -> Object:
        """Return the AdmissionReview that answers one; BadRequest for another body, ApiError or ClusterError."""
        request = review.get("request") if isinstance(review, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
            raise BadRequest("the body is not an AdmissionReview")
        if review.get("apiVersion") != _API_VERSION:
            raise BadRequest(f"send an AdmissionReview of {_API_VERSION}")
        response: Object = {"allowed": True}
        if not is_exempt((request.get("userInfo") or {}).get("username")):
            response = await self._respond(path, to_request(request))
        return {"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": {"uid": request["uid"], **response}}

    async def _respond(self, path: str, request: AdmissionRequest) -> Object:
        try:
            match path:
                case str() if path == HOLD:
                    return _patched(request, self._hold(request))
                case str() if path == MUTATE:
                    return _patched(request, await self._mutate(request))
                case str() if path == VALIDATE:
                    await self._validate(request)
                    return {"allowed": True, **({"warnings": request.warnings} if request.warnings else {})}
        except ApiError as error:
            return {"allowed": False, "status": error.to_status()}
        raise BadRequest(f"{path}: no such webhook")

    def _hold(self, request: AdmissionRequest) -> Object:
        obj = request.obj or {}
        metadata = obj.get("metadata") or {}
        present = metadata.get("finalizers") or []
        added = [each for each in self._finalizers(request.resource, obj) if each not in present]
        return {**obj, "metadata": {**metadata, "finalizers": [*present, *added]}} if added else obj

    async def _mutate(self, request: AdmissionRequest) -> Object:
        obj: Object = orjson.loads(orjson.dumps(request.obj))  # a plugin may change what it gets
        for plugin in self._plugins.get(request.resource.group_resource, ()):
            obj = plugin.mutate(_with_object(request, obj))
        return obj

    async def _validate(self, request: AdmissionRequest) -> None:
        user, known = to_user(request.user), dict[AccessCheck, AccessDecision]()
        for plugin in self._plugins.get(request.resource.group_resource, ()):
            await self._run(plugin, request, user, known)

    async def _run(
        self, plugin: AdmissionPlugin, request: AdmissionRequest, user: User, known: dict[AccessCheck, AccessDecision]
    ) -> None:
        """Run one plugin until it lacks no answer; raise what it raises then."""
        before = list(request.warnings)
        for _ in range(_RUNS_MAX):
            lacking: dict[AccessCheck, None] = {}

            def access(check: AccessCheck, lacking: dict[AccessCheck, None] = lacking) -> AccessDecision:
                if check not in known:
                    lacking[check] = None
                # Most requests are permitted, and a refusal would end this run before the other checks.
                return known.get(check, AccessDecision(is_allowed=True))

            self._look_up.missed = False
            request.warnings[:] = before
            failure: ApiError | None = None
            try:
                await plugin.validate(request, access)
            except ApiError as error:
                failure = error
            is_new = self._look_up.missed and await self._kinds.refresh_missing()
            if lacking:
                decisions = await asyncio.gather(*(self._access.decide(user, check) for check in lacking))
                known.update(zip(lacking, decisions, strict=True))
            elif not is_new:
                if failure is not None:
                    raise failure
                return
        raise InternalError(f"{type(plugin).__name__} needs too many permissions to decide")


class LookUp:
    """`find` for plugins; `missed` is set when a kind was not found."""

    def __init__(self, kinds: HostKinds) -> None:
        self._kinds = kinds
        self.missed = False

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an apiVersion and kind, None when the host does not serve it."""
        found = self._kinds.find(api_version, kind)
        self.missed |= found is None
        return found


def to_request(review: Mapping[str, Any]) -> AdmissionRequest:
    """Return the `request` of an AdmissionReview as plugins see it."""
    kind, resource = review.get("kind") or {}, review.get("resource") or {}
    namespace = str(review.get("namespace") or "")
    served = Resource(
        str(resource.get("group") or ""),
        str(resource.get("version") or ""),
        str(kind.get("kind") or ""),
        str(resource.get("resource") or ""),
        bool(namespace),
    )
    return AdmissionRequest(
        uid=str(review["uid"]),
        operation=str(review.get("operation") or ""),
        resource=served,
        versions=(served.version,),
        subresource=str(review.get("subResource") or ""),
        namespace=namespace,
        name=str(review.get("name") or ""),
        user=review.get("userInfo") or {},
        dry_run=bool(review.get("dryRun")),
        obj=review.get("object"),
        old=review.get("oldObject"),
        namespace_labels=None,
    )


def _with_object(request: AdmissionRequest, obj: Object) -> AdmissionRequest:
    fields = {name: getattr(request, name) for name in AdmissionRequest.__dataclass_fields__}
    return AdmissionRequest(**{**fields, "obj": obj})


def _patched(request: AdmissionRequest, changed: Object) -> Object:
    """Return an answer that admits, with the patch to the changed object if it differs."""
    operations = list(to_operations(request.obj or {}, changed))
    if not operations:
        return {"allowed": True}
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(operations)).decode(),
    }
