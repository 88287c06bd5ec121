"""AdmissionReviews in and out (admission.k8s.io/v1): which handler admits a request, and its answer as JSON patch.

A handler raises an ApiError to deny a request. Anything else that goes wrong admits it: the workloads of the cluster
must not depend on this service. That includes the deadline, which is shorter than the timeout of the webhooks.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from prometheus_client import Counter, Histogram

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, BadRequest, FederationError, WebhookFailed
from federation.apimachinery.jsonpatch import to_operations
from federation.apimachinery.metrics import LATENCY_BUCKETS_S
from federation.apimachinery.resources import Object

_log = structlog.get_logger(__name__)
_API_VERSION = "admission.k8s.io/v1"

OUTCOMES = ("allowed", "changed", "denied", "failed")
_reviews = Counter("federation_spread_reviews_total", "Admission reviews by how they ended", ["handler", "outcome"])
_durations = Histogram(
    "federation_spread_review_seconds", "Time of one admission review", ["handler"], buckets=LATENCY_BUCKETS_S
)


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """An admitted request: the object to store if it must change, and warnings for the user."""

    changed: Object | None = None
    warnings: tuple[str, ...] = ()


Handler = Callable[[Object], Awaitable[ReviewAnswer]]
"""Takes the `request` of a review; ApiError denies it."""


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Limits of one review."""

    deadline_s: float = 8.0
    """After this time a request is admitted unchanged; shorter than the timeout of the webhook configurations."""


class Reviews:
    """Answers AdmissionReviews by handlers, which have names."""

    def __init__(self, handlers: Mapping[str, Handler], clock: Clock, *, options: ReviewOptions | None = None) -> None:
        self._handlers = handlers
        self._clock = clock
        self._options = options or ReviewOptions()
        for name in handlers:
            for outcome in OUTCOMES:
                _reviews.labels(name, outcome)

    async def answer(self, name: str, review: Any) -> Object:
        """Return the AdmissionReview that answers a parsed one; BadRequest when it is none."""
        request = review.get("request") if isinstance(review, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
            raise BadRequest("the body is not an AdmissionReview")
        if review.get("apiVersion") != _API_VERSION:
            raise BadRequest(f"send an AdmissionReview of {_API_VERSION}")
        started_s = self._clock.monotonic()
        response, outcome = await self._respond(name, request)
        _reviews.labels(name, outcome).inc()
        _durations.labels(name).observe(self._clock.monotonic() - started_s)
        return {"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": {"uid": request["uid"], **response}}

    async def _respond(self, name: str, request: Object) -> tuple[Object, str]:
        try:
            verdict = await self._handle(name, request)
        except ApiError as error:
            return {"allowed": False, "status": error.to_status()}, "denied"
        except FederationError as error:
            _log.info("admitted without a decision", handler=name, error=str(error))
            return {"allowed": True, "warnings": [f"WorkloadSpread: admitted without a decision: {error}"]}, "failed"
        response: Object = {"allowed": True} | ({"warnings": list(verdict.warnings)} if verdict.warnings else {})
        if verdict.changed is None:
            return response, "allowed"
        patch = base64.b64encode(orjson.dumps(list(to_operations(request["object"], verdict.changed)))).decode()
        return {**response, "patchType": "JSONPatch", "patch": patch}, "changed"

    async def _handle(self, name: str, request: Object) -> ReviewAnswer:
        """Run the handler; WebhookFailed after the deadline."""
        handling = asyncio.ensure_future(self._handlers[name](request))
        deadline = asyncio.ensure_future(self._clock.sleep(self._options.deadline_s))
        try:
            await asyncio.wait((handling, deadline), return_when=asyncio.FIRST_COMPLETED)
            if handling.done():
                return handling.result()
            raise WebhookFailed(f"no decision within {self._options.deadline_s:g} s")
        finally:
            deadline.cancel()
            handling.cancel()
