"""Send the same request to two API servers and find the differences of their answers.

An answer is compared by its code, its reason, the fields and reasons of its causes, and the returned object without
what differs by nature: uid, times, resourceVersion and generated names and addresses.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import orjson
from tests.kubernetes.differences.requests import Request

Object = dict[str, Any]
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
"""Names the administrator's certificate, of which each server has its own."""
_TIMES: Final = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "lastUpdateTime", "time"})
OUR_FINALIZERS: Final = "kubeadmiral.io/"
OUR_CONDITIONS: Final = frozenset(("Scheduled", "Propagated"))
PANIC: Final = 599
"""The code of a server that closed the connection: a panic of the real one."""
ENDLESS: Final = 598
"""The code of an answer that does not end."""
ENDLESS_S: Final = 5.0
"""A read at a revision in the future is refused after three seconds."""
_MISSING: Final = "(absent)"


_HEADERS: Final = ("content-type", "cache-control", "retry-after", "vary")
_PRESENT: Final = ("audit-id", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid")
"""Headers whose values differ by nature."""
_VOLATILE: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"(current|resourceVersion|version|StorageError|resource version)[:=]? ?\"?\d+"), r"\1 N"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\(\d+\)"), "(N)"),
    (re.compile(r"0x[0-9a-f]{6,}"), "POINTER"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_accepted(self) -> bool:
        return self.code < 400

    @property
    def verdict(self) -> tuple[int, str, tuple[str, ...]]:
        """The code, the reason and the distinct causes of a refusal."""
        if self.code < 400 or not isinstance(self.body, dict):
            return self.code, "", ()
        details = self.body.get("details")
        listed = (details if isinstance(details, dict) else {}).get("causes") or []
        causes = sorted({f"{each.get('field', '')}: {each.get('reason', '')}" for each in listed})
        return self.code, self.body.get("reason", ""), tuple(causes)

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


def sent(http: httpx.Client, request: Request) -> Answer:
    """Return a server's answer to a request. A watch that the server does not end has the code `ENDLESS`."""
    headers = dict(request.headers)
    received = bytearray()
    try:
        with http.stream(
            request.method, request.url, content=request.content, headers=headers, timeout=ENDLESS_S
        ) as response:
            try:
                for part in response.iter_bytes():
                    received += part
                code = response.status_code
            except httpx.ReadTimeout:
                code = ENDLESS
    except httpx.RemoteProtocolError:
        return Answer(PANIC, "")
    except httpx.ReadTimeout:
        return Answer(ENDLESS, "")
    kept = {name: response.headers[name] for name in _HEADERS if name in response.headers}
    kept |= {name: "present" for name in _PRESENT if name in response.headers}
    warnings = tuple(sorted(response.headers.get_list("warning")))
    return Answer(code, _body(bytes(received), kept.get("content-type", "")), warnings, kept)


def _body(content: bytes, type_: str) -> Any:
    """Return the JSON value, the events of a watch as a list, or the text."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    if "json" in type_:
        try:
            return [orjson.loads(line) for line in content.splitlines() if line]
        except orjson.JSONDecodeError:
            pass
    return content.decode(errors="replace")


def differences(real: Answer, ours: Answer) -> list[str]:
    """Return one line for each difference."""
    if real.verdict[:2] != ours.verdict[:2]:
        return [f"answer: real {_verdict(real)} | ours {_verdict(ours)}"]
    found = [
        f"header {name}: real {real.headers.get(name, _MISSING)} | ours {ours.headers.get(name, _MISSING)}"
        for name in (*_HEADERS, *_PRESENT)
        if real.headers.get(name) != ours.headers.get(name)
    ]
    if real.verdict != ours.verdict:
        more, less = set(ours.verdict[2]), set(real.verdict[2])
        return [*found, f"causes: real {sorted(less - more)} | ours {sorted(more - less)}"]
    if real.warnings != ours.warnings:
        more, less = set(ours.warnings), set(real.warnings)
        found.append(f"warnings: real {sorted(less - more)} | ours {sorted(more - less)}")
    if not real.is_accepted and isinstance(real.body, dict) and isinstance(ours.body, dict):
        texts = tuple(_steady(each.message) for each in (real, ours))
        if texts[0] != texts[1]:
            found.append(f"message: real {texts[0][:500]} | ours {texts[1][:500]}")
        details = [{**(each.body.get("details") or {}), "causes": None, "uid": None} for each in (real, ours)]
        return [*found, *_compared(*(_filled(each) for each in details), "details")]
    return [*found, *_compared(normal(real.body), normal(ours.body), "")]


def _filled(details: Object) -> Object:
    """Return details without empty fields, which say no more than absent ones."""
    return {name: value for name, value in details.items() if value}


def _steady(text: str) -> str:
    for pattern, replacement in _VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def normal(obj: Any) -> Any:
    """Return an object without what differs between two servers by nature."""
    if isinstance(obj, list):
        return [normal(each) for each in obj]
    if isinstance(obj, dict) and isinstance(obj.get("object"), dict) and "type" in obj:
        return {**obj, "object": normal(obj["object"])}
    if isinstance(obj, dict) and isinstance(obj.get("rows"), list):
        rows = [{**row, "cells": None, "object": normal(row.get("object"))} for row in obj["rows"]]
        columns = [{**column, "description": None} for column in obj.get("columnDefinitions") or ()]
        return {**obj, "rows": rows, "columnDefinitions": columns, "metadata": None}
    if isinstance(obj, dict) and obj.get("kind") == "Status" and isinstance(obj.get("details"), dict):
        return {**obj, "details": {**obj["details"], "uid": None}}
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return obj
    if isinstance(obj.get("items"), list):
        metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        items = [normal({**each, "kind": None, "apiVersion": None}) for each in obj["items"]]
        return {**obj, "metadata": metadata, "items": items}
    metadata = {**obj["metadata"]}
    for name in ("uid", "resourceVersion", "creationTimestamp", "selfLink"):
        metadata.pop(name, None)
    if isinstance(entries := metadata.get("managedFields"), list):
        metadata["managedFields"] = sorted(({**each, "time": None} for each in entries), key=_entry_key)
    if generated := metadata.get("generateName"):
        metadata["name"] = f"{generated}*"
    if finalizers := metadata.get("finalizers"):
        metadata["finalizers"] = [name for name in finalizers if not name.startswith(OUR_FINALIZERS)]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
    uid = obj["metadata"].get("uid") or ""
    normalized: Object = _normal({**_without_our_conditions(obj), "metadata": metadata}, uid)
    if normalized.get("kind") == "Pod" and isinstance(normalized.get("spec"), dict):
        normalized["spec"] = _without_token(normalized["spec"])
    if normalized.get("kind") == "Service" and isinstance(normalized.get("spec"), dict):
        normalized["spec"] = _without_addresses(normalized["spec"])
    return normalized


def _entry_key(entry: Object) -> str:
    return orjson.dumps(entry, option=orjson.OPT_SORT_KEYS).decode()


def _without_our_conditions(obj: Object) -> Object:
    """Return a workload without the conditions that only a federation writes."""
    status = obj.get("status")
    if not isinstance(status, dict) or not isinstance(status.get("conditions"), list):
        return obj
    kept = [each for each in status["conditions"] if each.get("type") not in OUR_CONDITIONS]
    status = {name: value for name, value in status.items() if name != "conditions"}
    return {**obj, "status": {**status, "conditions": kept} if kept else status}


def _without_addresses(spec: Object) -> Object:
    """Return a Service's spec without the addresses and ports that the server chose."""
    spec = dict(spec)
    if spec.get("clusterIP") not in {None, "", "None"}:
        spec |= {"clusterIP": "ALLOCATED", "clusterIPs": ["ALLOCATED"]}
    if "ports" in spec:
        spec["ports"] = [{**port, "nodePort": "ALLOCATED"} if "nodePort" in port else port for port in spec["ports"]]
    return spec


def _without_token(spec: Object) -> Object:
    """Return a Pod's spec without the volume of the ServiceAccount admission plugin."""
    spec = dict(spec)
    _drop_token(spec, "volumes")
    for part in ("initContainers", "containers"):
        if part in spec:
            spec[part] = [dict(container) for container in spec[part] or ()]
            for container in spec[part]:
                _drop_token(container, "volumeMounts")
    return spec


def _drop_token(owner: Object, part: str) -> None:
    if part in owner:
        owner[part] = [each for each in owner[part] or () if not each["name"].startswith("kube-api-access-")]
        if not owner[part]:
            del owner[part]


def _normal(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {
            _normal(key, uid): "TIME" if key in _TIMES and inner else _normal(inner, uid)
            for key, inner in value.items()
            if key != _CREDENTIAL
        }
    if isinstance(value, list):
        return [_normal(inner, uid) for inner in value]
    if isinstance(value, str) and uid and uid in value:
        return value.replace(uid, "UID")
    return value


def _compared(real: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            below = f"{path}.{key}" if path else key
            if key not in ours:
                yield f"object: {below}: real {_value(real[key])} | ours {_MISSING}"
            elif key not in real:
                yield f"object: {below}: real {_MISSING} | ours {_value(ours[key])}"
            else:
                yield from _compared(real[key], ours[key], below)
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, pair in enumerate(zip(real, ours, strict=True)):
            yield from _compared(*pair, f"{path}[{index}]")
    elif type(real) is not type(ours) or real != ours:
        yield f"object: {path}: real {_value(real)} | ours {_value(ours)}"


def _value(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 120 else f"{text[:120]}..."


def _verdict(answer: Answer) -> str:
    code, reason, causes = answer.verdict
    return f"{code} {reason} {list(causes)}: {answer.message[:300]}"
