"""Requests for devices: what the claims of a pod ask for, in an annotation and for the scheduler. Pure.

A pod names ResourceClaims and ResourceClaimTemplates, which are objects of their own. The wing `features/devices` reads
them and writes what they ask for into an annotation of the federated object (`CLAIMS`), so that all who count the pods
of an object count the devices, too, and never before the claims are known.

A request is charged to its DeviceClass (`class_resource`): quotas, queues, prices and other decisions count that. It is
also a `DeviceNeed`, which the scheduler compares with the devices of each cluster
(`scheduling/framework/devicerooms.py`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.errors import InvalidInput
from federation.planning.clusters.deviceinventory import class_resource
from federation.planning.clusters.names import DEVICE_NEED_PREFIX

ALL_DEVICES = 32
"""Devices that a request for all is charged: the most that one claim can get, as in Kubernetes' own quotas."""
_REQUESTS_MAX = 32
_ALTERNATIVES_MAX = 8
_SELECTORS_MAX = 32
_COUNT_MAX = 2**31 - 1
_BYTES_MAX = 64 * 1024
"""Of all requests of one object."""
_TEXT_MAX = 120
_NEED = DEVICE_NEED_PREFIX
CLAIM, TEMPLATE = "claim", "template"
DEVICE_GROUP = "resource.k8s.io"
KINDS = {CLAIM: "ResourceClaim", TEMPLATE: "ResourceClaimTemplate"}


class ClaimError(InvalidInput):
    """The claims of an object cannot be counted; the message is for its author."""


class Alternative(msgspec.Struct, frozen=True, omit_defaults=True):
    """So many devices of a class that all selectors select; count 0 means all such devices of a node."""

    device_class: str
    count: int = 1
    selectors: tuple[str, ...] = ()


class DeviceRequest(msgspec.Struct, frozen=True):
    """One request of a claim: the first alternative that is there."""

    alternatives: tuple[Alternative, ...]


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of an object's pods: their requests by `claim/NAME` or `template/NAME`, or why they are not known."""

    requests: dict[str, tuple[DeviceRequest, ...]] = {}
    problem: str = ""

    def of(self, pod: Mapping[str, Any]) -> list[DeviceRequest]:
        """Return the requests of a pod spec."""
        return [request for ref in claim_refs(pod) for request in self.requests.get(ref, ())]


NO_CLAIMS = Claims()
CLAIMS = AnnotationRecord(names.DEVICE_CLAIMS, Claims)


@dataclass(frozen=True)
class DeviceNeed:
    """Devices that a pod needs on its node: one of several alternatives. Equal needs of a pod are counted together."""

    alternatives: tuple[Alternative, ...]

    @property
    def is_choice(self) -> bool:
        """Whether it has several alternatives: it then counts as one, else as the number of its devices."""
        return len(self.alternatives) > 1

    @property
    def is_all(self) -> bool:
        """Whether it asks for all devices of a node; it then counts as one."""
        return not self.is_choice and not self.alternatives[0].count

    @cached_property
    def resource(self) -> str:
        """The resource under which the need is counted in clusters whose devices were compared with it."""
        content = msgspec.json.encode([(each.device_class, each.count, each.selectors) for each in self._counted()])
        return f"{_NEED}{blake2b(content, digest_size=6).hexdigest()} {self._text()}"

    def _counted(self) -> Iterator[Alternative]:
        for each in self.alternatives:
            yield each if self.is_choice or not each.count else msgspec.structs.replace(each, count=1)

    def _text(self) -> str:
        texts = [_class_text(each) for each in self.alternatives]
        if self.is_choice:
            return " or ".join(f"{each.count} {text}" for each, text in zip(self.alternatives, texts, strict=True))
        return texts[0]


def _class_text(each: Alternative) -> str:
    text = f"of class {each.device_class}"
    return f"{text} with {' and '.join(map(_selector_text, each.selectors))}" if each.selectors else text


_QUANTITY = r'quantity\(\s*["\']([^"\']+)["\']\s*\)'
_FIELD = r'device\.(?:attributes|capacity)\[\s*["\'][^"\']+["\']\s*\]\.'
_PLAIN = (
    (re.compile(rf"\.compareTo\(\s*{_QUANTITY}\s*\)\s*(>=|<=|==|>|<)\s*0"), r" \2 \1"),
    (re.compile(rf"\.isGreaterThan\(\s*{_QUANTITY}\s*\)"), r" > \1"),
    (re.compile(rf"\.isLessThan\(\s*{_QUANTITY}\s*\)"), r" < \1"),
    (re.compile(_FIELD), ""),
)


def _selector_text(text: str) -> str:
    """Return a selector as people say it: memory >= 40Gi."""
    short = " ".join(text[: 4 * _TEXT_MAX].split())
    for pattern, plain in _PLAIN:
        short = pattern.sub(plain, short)
    return short if len(short) <= _TEXT_MAX else f"{short[:_TEXT_MAX]}…"


def device_text(resource: str, amount: int) -> str:
    """Return "2 devices of class gpu.example.com with memory >= 40Gi" for a resource of devices, "" for others."""
    name, found, _ = resource.partition(class_resource(""))
    if found:
        return f"{amount} {'device' if amount == 1 else 'devices'} of class {name}"
    if not resource.startswith(_NEED):
        return ""
    return f"{amount} {'device' if amount == 1 else 'devices'} {resource.partition(' ')[2]}"


def claim_refs(pod: Mapping[str, Any]) -> list[str]:
    """Return what a pod spec claims, with repetitions: `claim/NAME`, `template/NAME`."""
    found = []
    claims = pod.get("resourceClaims")
    for each in claims if isinstance(claims, list) else ():
        if isinstance(each, Mapping):
            for field, kind in (("resourceClaimName", CLAIM), ("resourceClaimTemplateName", TEMPLATE)):
                if isinstance(name := each.get(field), str) and name:
                    found.append(f"{kind}/{name}")
    return found


def requests_in(template: Mapping[str, Any]) -> tuple[DeviceRequest, ...]:
    """Return the requests of a ResourceClaim or ResourceClaimTemplate; ClaimError.

    Requests for administrative access use no device.
    """
    spec = _mapping(template.get("spec"))
    if template.get("kind") == KINDS[TEMPLATE]:
        spec = _mapping(spec.get("spec"))
    listed = _mapping(spec.get("devices")).get("requests")
    found = []
    for request in _mappings(listed, _REQUESTS_MAX):
        first = _mappings(request.get("firstAvailable"), _ALTERNATIVES_MAX)
        parts = first or [_mapping(request.get("exactly"))]
        if any(part.get("adminAccess") for part in parts):
            continue
        found.append(DeviceRequest(tuple(map(_alternative, parts))))
    if sum(len(msgspec.json.encode(request)) for request in found) > _BYTES_MAX:
        raise ClaimError(f"its selectors are longer than {_BYTES_MAX // 1024} KiB; write shorter ones")
    return tuple(found)


def _alternative(part: Mapping[str, Any]) -> Alternative:
    selectors = (
        _mapping(each.get("cel")).get("expression") for each in _mappings(part.get("selectors"), _SELECTORS_MAX)
    )
    count = part.get("count")
    count = min(max(1, count), _COUNT_MAX) if type(count) is int else 1
    return Alternative(
        str(part.get("deviceClassName") or ""),
        0 if part.get("allocationMode") == "All" else count,
        tuple(sorted({str(text) for text in selectors if text})),
    )


def charged(request: DeviceRequest) -> dict[str, int]:
    """Return the devices by class that a request is charged in quotas: of each class the most of any alternative."""
    amounts: dict[str, int] = {}
    for each in request.alternatives:
        name = class_resource(each.device_class)
        amounts[name] = max(amounts.get(name, 0), each.count or ALL_DEVICES)
    return amounts


def needs_of(requests: Iterable[DeviceRequest]) -> tuple[tuple[DeviceNeed, int], ...]:
    """Return the needs of a pod with how often it has them."""
    counts: dict[DeviceNeed, int] = {}
    for request in requests:
        first = request.alternatives[0]
        need = DeviceNeed(request.alternatives)
        if not need.is_choice and first.count:
            need = DeviceNeed((msgspec.structs.replace(first, count=1),))
        counts[need] = counts.get(need, 0) + (1 if need.is_choice or need.is_all else first.count)
    return tuple(sorted(counts.items(), key=lambda entry: entry[0].resource))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any, items_max: int) -> list[Mapping[str, Any]]:
    return [each for each in value[:items_max] if isinstance(each, Mapping)] if isinstance(value, list) else []
