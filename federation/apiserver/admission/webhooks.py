"""One admission webhook, compiled from its configuration, called through a given `WebhookCaller`. No HTTP here.

Responses are not trusted: a wrong uid, patch or shape is a failed call, to which the failure policy applies. Read
`chain.py` next.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.apimachinery.effect import Effect, is_called
from federation.apimachinery.errors import ApiError, BadRequest, Forbidden, InternalError, WebhookFailed, from_status
from federation.apimachinery.jsonpatch import apply_json_patch
from federation.apimachinery.resources import Object
from federation.apimachinery.webhooks import WebhookCaller
from federation.apiserver.admission.environment import Activation
from federation.apiserver.admission.matching import (
    Condition,
    ConditionError,
    Selectors,
    all_conditions_hold,
    parse_conditions,
    parse_selectors,
)
from federation.apiserver.admission.requests import AdmissionRequest, Rule, find_version, is_object, parse_rules
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions

_API_VERSION = "admission.k8s.io/v1"
_WARNING_LENGTH_MAX = 256
_ANNOTATION_LENGTH_MAX = 10 * 1024


@dataclass(frozen=True, slots=True)
class Webhook:
    """One entry of a Validating- or MutatingWebhookConfiguration."""

    name: str
    client_config: Mapping[str, Any]
    rules: tuple[Rule, ...]
    selectors: Selectors
    conditions: tuple[Condition, ...]
    is_exact: bool
    fails_closed: bool
    timeout_s: float
    has_side_effects: bool
    is_reinvoked: bool
    speaks_v1: bool

    def find_version(self, request: AdmissionRequest) -> str:
        """Return the version to send the object in, "" when the request does not match; Forbidden, BadRequest."""
        version = find_version(self.rules, request, is_exact=self.is_exact)
        if not version or not self.selectors.matches(request):
            return ""
        if self.conditions:
            try:
                if not all_conditions_hold(self.conditions, Activation(request, version).with_params(None)):
                    return ""
            except ConditionError as error:
                if self.fails_closed:
                    resource = request.resource.group_resource
                    raise Forbidden(
                        f'{resource} "{request.name}" is forbidden: {error}',
                        details={
                            "name": request.name,
                            "group": request.resource.group,
                            "kind": request.resource.plural,
                        },
                    ) from error
                return ""
        if request.dry_run and self.has_side_effects:
            raise BadRequest(f'admission webhook "{self.name}" does not support dry run')
        return version

    async def call(
        self,
        caller: WebhookCaller | None,
        request: AdmissionRequest,
        version: str,
        options: WriteOptions | DeleteOptions,
    ) -> Object | None:
        """Return the patched object, None for no change; ApiError when the webhook denies the request.

        Adds the webhook's warnings and audit annotations to `options`. A failed call is an InternalError, or is ignored
        under failurePolicy Ignore.
        """
        try:
            response = await self._respond(caller, request, version)
            patched = self._patched(request, version, response) if response.get("allowed") else None
        except WebhookFailed as error:
            if self.fails_closed:
                raise self._failure(f"failed to call webhook: {error}") from error
            return None
        given = response.get("warnings")
        options.warnings.extend(str(text)[:_WARNING_LENGTH_MAX] for text in (given if isinstance(given, list) else ()))
        annotations = response.get("auditAnnotations")
        for key, value in annotations.items() if isinstance(annotations, dict) else ():
            options.audit_annotations[f"{self.name}/{key}"] = str(value)[:_ANNOTATION_LENGTH_MAX]
        if not response["allowed"]:
            raise _denial(self.name, response.get("status"))
        return patched

    async def _respond(self, caller: WebhookCaller | None, request: AdmissionRequest, version: str) -> dict[str, Any]:
        if caller is None:
            raise WebhookFailed("this API server was started without a way to call webhooks")
        if not self.speaks_v1:
            raise WebhookFailed("admissionReviewVersions does not list v1, the only version that is spoken here")
        review = {"apiVersion": _API_VERSION, "kind": "AdmissionReview", "request": request.to_review(version)}
        answer = await caller.call(self.client_config, review, timeout_s=self.timeout_s)
        if not isinstance(answer, dict) or answer.get("kind") != "AdmissionReview":
            raise WebhookFailed("the answer is not an AdmissionReview")
        if answer.get("apiVersion") != _API_VERSION:
            raise WebhookFailed(f"expected webhook response of {_API_VERSION}, got {answer.get('apiVersion')}")
        response = answer.get("response")
        if not isinstance(response, dict) or not isinstance(response.get("allowed"), bool):
            raise WebhookFailed("webhook response was absent")
        if response.get("uid") != request.uid:
            raise WebhookFailed(f'expected response.uid="{request.uid}", got "{response.get("uid")}"')
        return response

    def _patched(self, request: AdmissionRequest, version: str, response: Mapping[str, Any]) -> Object | None:
        patch = response.get("patch")
        if not patch or request.obj is None:
            return None
        if response.get("patchType") != "JSONPatch":
            raise WebhookFailed(f"unsupported patch type {response.get('patchType')}")
        try:
            operations = orjson.loads(base64.b64decode(patch, validate=True))
            # Parsed again, so that no part of the request's object is shared with the result.
            patched = apply_json_patch(orjson.loads(orjson.dumps(request.to_review(version)["object"])), operations)
        except (binascii.Error, ValueError, TypeError, ApiError) as error:
            raise WebhookFailed(f"the patch cannot be applied: {error}") from error
        if not is_object(patched, request.obj or {}):
            raise WebhookFailed("the patch does not leave an object")
        return request.from_version(patched, version)

    def _failure(self, text: str) -> InternalError:
        return InternalError(f'Internal error occurred: failed calling webhook "{self.name}": {text}')


def parse_webhooks(configuration: Object, effect: Effect = Effect.ALL) -> tuple[Webhook, ...]:
    """Return the webhooks of a stored configuration that this server calls, in their order."""
    return tuple(
        Webhook(
            name=webhook["name"],
            client_config=webhook.get("clientConfig") or {},
            rules=parse_rules(webhook.get("rules")),
            selectors=parse_selectors(webhook),
            conditions=parse_conditions(webhook.get("matchConditions"), environment()),
            is_exact=webhook.get("matchPolicy") == "Exact",
            fails_closed=webhook.get("failurePolicy") != "Ignore",
            timeout_s=float(webhook.get("timeoutSeconds") or 10),
            has_side_effects=webhook.get("sideEffects") not in {"None", "NoneOnDryRun"},
            is_reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
            speaks_v1="v1" in (webhook.get("admissionReviewVersions") or ()),
        )
        for webhook in configuration.get("webhooks") or ()
        if is_called(webhook.get("clientConfig") or {}, effect)
    )


def _denial(name: str, status: Any) -> ApiError:
    """Return the webhook's status as an error, its message prefixed with the webhook's name."""
    status = status if isinstance(status, dict) else {}
    denied = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason")
    code = status.get("code")
    details = status.get("details")
    return from_status(
        {
            "message": f"{denied}: {why}" if why else f"{denied} without explanation",
            "reason": status.get("reason") if isinstance(status.get("reason"), str) else "",
            "details": details if isinstance(details, dict) else None,
        },
        code if isinstance(code, int) and 400 <= code <= 599 else 400,
    )
