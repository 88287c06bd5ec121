"""Send the same request to two API servers and find the differences of their answers.

An answer is compared by its code, its reason, the fields and reasons of its causes, and the returned object without
what differs by nature: uid, times, resourceVersion and generated names and addresses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import orjson

Object = dict[str, Any]
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
"""Names the administrator's certificate, of which each server has its own."""
_TIMES: Final = frozenset({"creationTimestamp", "lastTransitionTime", "lastUpdateTime", "time"})
OUR_FINALIZERS: Final = "kubeadmiral.io/"
OUR_CONDITIONS: Final = frozenset(("Scheduled", "Propagated"))
PANIC: Final = 599
"""The code of a server that closed the connection: a panic of the real one."""
_MISSING: Final = "(absent)"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def is_accepted(self) -> bool:
        return self.code < 400

    @property
    def verdict(self) -> tuple[int, str, tuple[str, ...]]:
        """The code, the reason and the distinct causes of a refusal."""
        if self.is_accepted:
            return self.code, "", ()
        if not isinstance(self.body, dict):
            return self.code, "", ()
        listed = (self.body.get("details") or {}).get("causes") or []
        causes = sorted({f"{each.get('field', '')}: {each.get('reason', '')}" for each in listed})
        return self.code, self.body.get("reason", ""), tuple(causes)

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


def sent(http: httpx.Client, method: str, url: str, body: Any, *, type_: str = "application/json") -> Answer:
    """Return a server's answer to a request."""
    content = None if body is None else orjson.dumps(body)
    headers = {"content-type": type_, "accept": "application/json"}
    try:
        response = http.request(method, url, content=content, headers=headers)
    except httpx.RemoteProtocolError:
        return Answer(PANIC, "")
    try:
        parsed = response.json()
    except ValueError:
        parsed = response.text
    warnings = tuple(sorted(response.headers.get_list("warning")))
    return Answer(response.status_code, parsed, warnings)


def differences(real: Answer, ours: Answer) -> list[str]:
    """Return one line for each difference."""
    if real.verdict[:2] != ours.verdict[:2]:
        return [f"answer: real {_verdict(real)} | ours {_verdict(ours)}"]
    if real.verdict != ours.verdict:
        more, less = set(ours.verdict[2]), set(real.verdict[2])
        return [f"causes: real {sorted(less - more)} | ours {sorted(more - less)}"]
    found = []
    if real.is_accepted:
        found += list(_compared(normal(real.body), normal(ours.body), ""))
    if real.warnings != ours.warnings:
        found.append(f"warnings: real {list(real.warnings)} | ours {list(ours.warnings)}")
    return found


def normal(obj: Any) -> Any:
    """Return an object without what differs between two servers by nature."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return obj
    metadata = {**obj["metadata"]}
    for field in ("uid", "resourceVersion", "creationTimestamp", "selfLink", "managedFields"):
        metadata.pop(field, None)
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
            spec[part] = [dict(container) for container in spec[part]]
            for container in spec[part]:
                _drop_token(container, "volumeMounts")
    return spec


def _drop_token(owner: Object, part: str) -> None:
    if part in owner:
        owner[part] = [each for each in owner[part] if not each["name"].startswith("kube-api-access-")]
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
