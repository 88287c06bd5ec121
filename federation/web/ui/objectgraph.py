"""The graph of an application, drawn by the server: from its policy over the object and its clusters to their pods.

Left are its policy and overrides, Services that select its pods, autoscalers, and what its pods refer to. Pure: places
are in the units of the picture, which does not depend on the width of the screen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from federation.apimachinery.selectors import compile_label_map
from federation.planning.followers.references import pod_references
from federation.web.ui.objectscreen import merged_name
from federation.web.ui.objecttree import ClusterBranch, ObjectTree
from federation.web.ui.podtroubles import tone_of

NODE_WIDTH, NODE_HEIGHT = 230, 46
_PITCH = 58
_COLUMNS = (0, 290, 580, 850)
"""Left edges of the columns: what acts on the object, the object, clusters, pods."""
_SOURCES_MAX, _CLUSTERS_MAX, DOTS_MAX = 16, 30, 36
_DOT, _DOTS_PER_ROW = 15, 12
_NAME_LENGTH_MAX = 25
_WAVE_HEIGHT = 24
"""Room for the title of a wave above its clusters."""
_WAVE_WORDS = {"WaitingForApproval": "waits for approval"}
_WAVE_TONES = {
    "Complete": "good", "Progressing": "busy", "Soaking": "busy", "WaitingForApproval": "warn", "Paused": "warn",
    "Failed": "bad",
}  # fmt: skip
_CONFIGS: Mapping[str, str] = {
    "ConfigMap": "configmaps", "Secret": "secrets", "PersistentVolumeClaim": "persistentvolumeclaims",
    "ServiceAccount": "serviceaccounts",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """Something that acts on the object; `role` says how, `href` leads to it."""

    kind: str
    name: str
    role: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A box with two lines of text; `full` is the whole name where the second line is cut."""

    x: int
    y: int
    kind: str
    name: str
    full: str
    href: str = ""
    tone: str = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A pod."""

    x: int
    y: int
    tone: str
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Wave:
    """A wave of the object's rollout, or the clusters that the rollout does not change."""

    title: str
    tone: str
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Graph:
    """The picture: boxes, lines between them, pods, texts `(x, y, words)`, and waves `(y, tone, words)`."""

    height: int
    nodes: tuple[Node, ...]
    edges: tuple[str, ...]
    dots: tuple[Dot, ...]
    texts: tuple[tuple[int, int, str], ...]
    waves: tuple[tuple[int, str, str], ...]
    words: str


def waves_of(status: Mapping[str, Any]) -> list[Wave]:
    """Return the waves of a FederatedRollout's status, in order; none without a rollout."""
    return [
        Wave(
            f"Wave {number} {wave['name']}: {_WAVE_WORDS.get(wave['state'], str(wave['state']).lower())}",
            _WAVE_TONES.get(wave["state"], "unknown"),
            frozenset(wave["clusters"]),
        )
        for number, wave in enumerate(status.get("waves") or (), start=1)
    ]


def sources_of(
    obj: Mapping[str, Any],
    tree: ObjectTree,
    services: Sequence[Mapping[str, Any]],
    scalers: Sequence[Mapping[str, Any]],
) -> list[Source]:
    """Return what acts on an object, policies first."""
    metadata = obj["metadata"]
    namespace = str(metadata.get("namespace") or "")
    found = []
    if tree.policy:
        found.append(_policy("PropagationPolicy", "places it", tree.policy))
    found += [_policy("OverridePolicy", "customises it", override) for override in tree.overrides]
    for scaler in scalers:
        target = (scaler.get("spec") or {}).get("scaleTargetRef") or {}
        if (target.get("kind"), target.get("name")) == (obj.get("kind"), metadata["name"]):
            address = _address("autoscaling", "v2", "horizontalpodautoscalers", namespace, scaler["metadata"]["name"])
            found.append(Source("HorizontalPodAutoscaler", scaler["metadata"]["name"], "scales it", address))
    spec = obj.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    template = template if isinstance(template, Mapping) else {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    for service in services:
        selector = (service.get("spec") or {}).get("selector")
        if selector and compile_label_map(selector).matches(labels):
            address = _address("core", "v1", "services", namespace, service["metadata"]["name"])
            found.append(Source("Service", service["metadata"]["name"], "leads to its pods", address))
    for reference in sorted(pod_references(template.get("spec")), key=lambda each: (each.kind, each.name)):
        plural = _CONFIGS.get(reference.kind)
        address = _address("core", "v1", plural, namespace, reference.name) if plural else ""
        found.append(Source(reference.kind, reference.name, "follows it", address))
    return found


def _policy(kind: str, role: str, ref: Mapping[str, str]) -> Source:
    namespace = ref.get("namespace") or ""
    kind = kind if namespace else f"Cluster{kind}"
    plural = kind.lower().removesuffix("y") + "ies"
    return Source(kind, ref["name"], role, _address("core.kubeadmiral.io", "v1alpha1", plural, namespace, ref["name"]))


def _address(group: str, version: str, plural: str, namespace: str, name: str) -> str:
    return "/ui/objects/" + "/".join(quote(part, safe="") for part in (group, version, plural, namespace or "-", name))


def draw(
    obj: Mapping[str, Any],
    tree: ObjectTree,
    sources: Sequence[Source],
    pods: Mapping[str, Sequence[Mapping[str, Any]]],
    waves: Sequence[Wave] = (),
) -> Graph:
    """Return the picture; `pods` are those of the clusters where they were read, `waves` those of its rollout."""
    wave_at = {cluster: at for at, wave in enumerate(waves) for cluster in wave.clusters}
    branches = sorted(tree.branches, key=lambda each: (wave_at.get(each.cluster, len(waves)), each.tone == "good"))
    branches = branches[:_CLUSTERS_MAX]
    shown = sources[:_SOURCES_MAX]
    firsts = _first_of_waves(branches, wave_at, waves)
    heights = [
        _height_of(pods.get(branch.cluster, ())) + (_WAVE_HEIGHT if branch.cluster in firsts else 0)
        for branch in branches
    ]
    height = max(len(shown) * _PITCH, sum(heights), _PITCH)
    texts: list[tuple[int, int, str]] = []
    left = [
        _node(0, (height - len(shown) * _PITCH) // 2 + at * _PITCH, f"{each.kind} {each.role}", each.name, each.href)
        for at, each in enumerate(shown)
    ]
    middle = (height - _PITCH) // 2
    name = str(obj["metadata"]["name"])
    note = f"{tree.ready or 0} of {tree.wanted} ready" if tree.wanted is not None else ""
    centre = _node(1, middle, str(obj.get("kind")), name, "", tree.tone, note)
    nodes, dots, edges = [*left, centre], list[Dot](), [_edge(node, centre) for node in left]
    top = (height - sum(heights)) // 2
    titles = []
    for branch, room in zip(branches, heights, strict=True):
        head = 0
        if (wave := firsts.get(branch.cluster)) is not None:
            titles.append((top + 15, wave.tone, wave.title))
            head = _WAVE_HEIGHT
        body, own = top + head, room - head
        node = _cluster(branch, body + (own - _PITCH) // 2)
        nodes.append(node)
        edges.append(_edge(centre, node))
        rows = pods.get(branch.cluster, ())
        dots += _dots(
            rows, body + (own - _rows(rows) * _DOT) // 2, branch.cluster, str(obj["metadata"].get("namespace"))
        )
        if rows:
            edges.append(f"M{node.x + NODE_WIDTH} {node.y + NODE_HEIGHT // 2} H{_COLUMNS[3] - 6}")
        if len(rows) > DOTS_MAX:
            texts.append((_COLUMNS[3], node.y + NODE_HEIGHT + 8, f"and {len(rows) - DOTS_MAX} more pods"))
        top += room
    foot = height + 18
    if more := len(sources) - len(shown):
        texts.append((_COLUMNS[0], foot, f"and {more} more"))
    if more := len(tree.branches) - len(branches):
        texts.append((_COLUMNS[2], foot, f"and {more} more clusters"))
    words = f"{obj.get('kind')} {name}: {len(sources)} objects act on it, {len(tree.branches)} clusters have it"
    return Graph(
        height + (28 if texts else 4), tuple(nodes), tuple(edges), tuple(dots), tuple(texts), tuple(titles), words
    )


def _first_of_waves(
    branches: Sequence[ClusterBranch], wave_at: Mapping[str, int], waves: Sequence[Wave]
) -> dict[str, Wave]:
    """Return the cluster that stands first in each wave, and below them the first that is in none."""
    if not waves:
        return {}
    found: dict[int, str] = {}
    for branch in branches:
        found.setdefault(wave_at.get(branch.cluster, len(waves)), branch.cluster)
    rest = Wave("Not in this rollout", "unknown", frozenset())
    return {cluster: waves[at] if at < len(waves) else rest for at, cluster in found.items()}


def _node(column: int, y: int, kind: str, name: str, href: str, tone: str = "plain", note: str = "") -> Node:
    cut = name if len(name) <= _NAME_LENGTH_MAX else name[: _NAME_LENGTH_MAX - 1] + "…"
    return Node(_COLUMNS[column], y + (_PITCH - NODE_HEIGHT) // 2, kind, cut, name, href, tone, note)


def _cluster(branch: ClusterBranch, y: int) -> Node:
    note = f"{branch.ready or 0}/{branch.wanted}" if branch.wanted is not None else ""
    href = f"/ui/fleet/{quote(branch.cluster, safe='')}"
    return _node(2, y, branch.state, branch.cluster, href, branch.tone, note)


def _edge(source: Node, target: Node) -> str:
    x1, y1 = source.x + NODE_WIDTH, source.y + NODE_HEIGHT // 2
    x2, y2 = target.x, target.y + NODE_HEIGHT // 2
    half = (x2 - x1) // 2
    return f"M{x1} {y1} C{x1 + half} {y1} {x2 - half} {y2} {x2} {y2}"


def _rows(pods: Sequence[Any]) -> int:
    return -(-min(len(pods), DOTS_MAX) // _DOTS_PER_ROW)


def _height_of(pods: Sequence[Any]) -> int:
    """Return the height of a cluster with its pods."""
    return max(_PITCH, _rows(pods) * _DOT + (30 if len(pods) > DOTS_MAX else 12))


def _dots(pods: Sequence[Mapping[str, Any]], top: int, cluster: str, namespace: str) -> list[Dot]:
    return [
        Dot(
            _COLUMNS[3] + at % _DOTS_PER_ROW * _DOT + _DOT // 2,
            top + at // _DOTS_PER_ROW * _DOT + _DOT // 2,
            tone_of(pod),
            f"{pod['name']}: {pod['status']}",
            f"/ui/pods/{quote(namespace, safe='')}/{quote(merged_name(cluster, pod['name']), safe='')}",
        )
        for at, pod in enumerate(pods[:DOTS_MAX])
    ]
