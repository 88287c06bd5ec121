"""Pods of members: logs, Events and YAML of one, and the logs of all pods of a workload across clusters.

Pods are read on the host, which asks the members (docs/reference/merged-pods.md): host and member must both allow it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from federation.apimachinery.errors import ApiError, ConfigurationError, NotFound
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import PODS
from federation.apimachinery.selectors import format_label_selector
from federation.web.memberpods import pod_row
from federation.web.ui.actions.objectactions import editable
from federation.web.ui.actionscreen import check_segments
from federation.web.ui.loglines import Line, merge
from federation.web.ui.objectscreen import PATH as OBJECT_PATH
from federation.web.ui.objectscreen import target_of
from federation.web.ui.podtroubles import tone_of
from federation.web.ui.screen import Page, Screen, nothing_watched, problem_of

_LINES = 300
_LINES_MAX = 5_000
_BYTES_MAX = 1 << 20
_PODS_MAX = 20
"""Pods whose logs are merged."""
_EVENTS_MAX = 50
PATH = "/ui/pods/{namespace}/{name}"
VIEWS = (("", "Logs"), ("events", "Events"), ("yaml", "YAML"))
_FOLLOW_S = 3.0


async def _load(page: Page) -> Mapping[str, Any]:
    namespace, name = page.parts["namespace"], page.parts["name"]
    check_segments(namespace, name)
    try:
        pod = await page.api.get(PODS.path(namespace, name))
    except NotFound as error:
        raise NotFound(
            f"{error.message}. It is gone, or the host is an API server that answers for its own pods only."
        ) from error
    containers = containers_of(pod)
    view = page.query.get("view", "")
    row = pod_row(pod)
    found: dict[str, Any] = {
        "pod": pod,
        "row": row,
        "tone": tone_of(row),
        "views": VIEWS,
        "view": view,
        "containers": containers,
        "container": page.query.get("container") or (containers[0] if containers else ""),
        "is_followed": bool(page.query.get("follow")) and not view,
    }
    if view == "yaml":
        shown = {**editable(pod), "status": pod.get("status")}
        return {**found, "manifest": yaml.dump(shown, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)}
    if view == "events":
        query = {"fieldSelector": f"involvedObject.name={name}", "limit": "500"}
        events = (await page.get_optional(f"/api/v1/namespaces/{namespace}/events", {"items": []}, **query))["items"]
        return {**found, "events": sorted(events, key=_time_of, reverse=True)[:_EVENTS_MAX]}
    log, problem = await _log(page, namespace, name, str(found["container"]), lines_of(page))
    return {**found, "lines": merge({"": log}, page.query.get("q", ""), _LINES_MAX), "problem": problem}


def containers_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the names of a pod's containers; its cluster may have sent anything."""
    spec = pod.get("spec") or {}
    listed = [each for kind in ("containers", "initContainers") for each in spec.get(kind) or ()]
    return [str(each["name"]) for each in listed if isinstance(each, Mapping) and each.get("name")]


def _time_of(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def lines_of(page: Page) -> int:
    """Return how many lines the query asks for; ConfigurationError for no number."""
    text = page.query.get("lines", "")
    if not text:
        return _LINES
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) <= _LINES_MAX):
        raise ConfigurationError(f"Lines: write a number from 1 to {_LINES_MAX}")
    return int(text)


async def _log(page: Page, namespace: str, name: str, container: str, lines: int) -> tuple[bytes, str]:
    """Return the end of a log and "", or nothing and why it cannot be read."""
    query = {"tailLines": str(lines), "limitBytes": str(_BYTES_MAX), "timestamps": "true"}
    if container:
        query["container"] = container
    if page.query.get("previous"):
        query["previous"] = "true"
    try:
        return await page.api.send(
            "GET", f"{PODS.path(namespace, name)}/log", query, bytes_max=_BYTES_MAX + _BYTES_MAX // 4
        ), ""
    except ApiError as error:
        return b"", problem_of(error)


async def _load_all(page: Page) -> Mapping[str, Any]:
    resource, namespace, name = target_of(page)
    check_segments(*page.parts.values())
    source = await page.api.get(resource.path(namespace, name))
    selector = (source.get("spec") or {}).get("selector") or {}
    is_plain = source["kind"] in ("Service", "ReplicationController")
    named = {"matchLabels": selector} if is_plain and selector else selector
    pods: Sequence[Mapping[str, Any]] = ()
    if named.get("matchLabels") or named.get("matchExpressions"):  # without either, all pods of the namespace match
        listed = await page.api.get(PODS.path(namespace), labelSelector=format_label_selector(named), limit="500")
        pods = sorted(listed["items"], key=lambda pod: natural_key(pod["metadata"]["name"]))
    shown = pods[:_PODS_MAX]
    lines = lines_of(page)
    share = max(20, lines // max(1, len(shown)))

    async def read(pod: Mapping[str, Any]) -> tuple[bytes, str]:
        return await _log(page, namespace, str(pod["metadata"]["name"]), (containers_of(pod) or [""])[0], share)

    logs = await asyncio.gather(*map(read, shown))
    names = [str(pod["metadata"]["name"]) for pod in shown]
    found: Sequence[Line] = merge(
        {pod: log for pod, (log, _) in zip(names, logs, strict=True)}, page.query.get("q", ""), lines
    )
    return {
        "source": source,
        "lines": found,
        "pods": names,
        "pods_more": len(pods) - len(shown),
        "problems": [f"{pod}: {problem}" for pod, (_, problem) in zip(names, logs, strict=True) if problem],
        "is_followed": bool(page.query.get("follow")),
        "object_path": page.path.removesuffix("/logs"),
    }


SCREEN = Screen(
    PATH,
    "Pod",
    "pod.html",
    _load,
    nothing_watched,
    is_listed=False,
    poll_s=_FOLLOW_S,
    pause_s=_FOLLOW_S,
)
LOGS_SCREEN = Screen(
    f"{OBJECT_PATH}/logs",
    "Logs",
    "logs.html",
    _load_all,
    nothing_watched,
    is_listed=False,
    poll_s=_FOLLOW_S,
    pause_s=_FOLLOW_S,
)
