"""Admission checks: what a service of the administrators says about a job that could start now. Pure.

Before a job that has quota and room is admitted, its queue's checks are asked, one after the other. Without `Ready`
from all of them it is not admitted: it keeps its place in the order and holds nothing, so others pass it.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from federation.features.queues.rules.facts import Admitted
from federation.scheduling.framework.types import CPU

READY_S = 60.0
"""How long `Ready` counts; the job starts in the next round, so it is rarely asked for twice."""
_RETRY_S, _RETRY_S_MIN, _RETRY_S_MAX = 30.0, 5.0, 3600.0
_REJECTED_S = 3600.0
_BECAUSE_MAX = 256


class Verdict(StrEnum):
    """The answer to a check."""

    READY = "Ready"
    RETRY = "Retry"
    """Not now; it is asked again after a time."""
    REJECTED = "Rejected"
    """No; it is asked again after an hour, or when the job or its queue has changed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One service that is asked."""

    name: str
    url: str
    ca_data: bytes
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What counts until `until_s`: the job may start, or it waits because of a check."""

    is_ready: bool
    until_s: float
    because: str = ""


class _Reply(msgspec.Struct, rename="camel"):
    status: Verdict
    message: str = ""
    retry_after_seconds: float = _RETRY_S


def compile_checks(spec: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return the checks of a ClusterJobQueue; ValueError for a malformed certificate."""
    return tuple(
        Check(
            str(each["name"]),
            str(each["url"]),
            base64.b64decode(str(each.get("caBundle") or ""), validate=True),
            float(each.get("timeoutSeconds", 10)),
        )
        for each in spec.get("admissionChecks") or ()
    )


def request_body(check: Check, about: Mapping[str, Any], admitted: Admitted) -> bytes:
    """Return the body of a question: the job, the flavours that it would use, and the clusters that could run it."""
    flavors: dict[str, dict[str, str]] = {}
    for (flavor, resource), amount in admitted.holds.items():
        flavors.setdefault(flavor, {})[resource] = f"{amount}m" if resource == CPU else str(amount)
    return orjson.dumps(
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "AdmissionCheckRequest",
            "check": check.name,
            **about,
            "flavors": flavors,
            "clusters": sorted(admitted.clusters),
        }
    )


def to_answer(check: Check, status: int, body: bytes, problem: str, now: float) -> Answer:
    """Return what an answer means; `problem` is why there is none that counts. Whatever is wrong with it means no."""
    if not 200 <= status < 300:
        return Answer(is_ready=False, until_s=now + _RETRY_S, because=f"admission check {check.name}: {problem}")
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        because = f"admission check {check.name}: its answer has no status Ready, Retry or Rejected"
        return Answer(is_ready=False, until_s=now + _RETRY_S, because=because)
    if reply.status is Verdict.READY:
        return Answer(is_ready=True, until_s=now + READY_S)
    said = f": {reply.message[:_BECAUSE_MAX]}" if reply.message else ""
    verb = "rejected it" if reply.status is Verdict.REJECTED else "holds it"
    wait_s = _REJECTED_S if reply.status is Verdict.REJECTED else reply.retry_after_seconds
    wait_s = min(max(wait_s, _RETRY_S_MIN), _RETRY_S_MAX)
    return Answer(is_ready=False, until_s=now + wait_s, because=f"admission check {check.name} {verb}{said}")
