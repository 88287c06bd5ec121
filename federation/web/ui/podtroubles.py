"""The causes that keep pods from running, counted over the pods of an object. Pure.

A scheduler says "0/3 nodes are available: 3 Insufficient cpu. preemption: …". That is the cause "Insufficient cpu".
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FINE = frozenset(("Running", "Succeeded", "Completed", "Terminating"))
STARTING = frozenset(("Pending", "ContainerCreating", "PodInitializing"))
_NODES = re.compile(r"^\d+/\d+ nodes are available: (.*)$", re.DOTALL)
_COUNT = re.compile(r"^\d+ ")
_WORDS_LENGTH_MAX = 160
_TROUBLES_MAX = 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """A cause with its pods: how many have it, and in which clusters."""

    words: str
    pods: int
    clusters: tuple[str, ...]


def tone_of(pod: Mapping[str, Any]) -> str:
    """Return the tone of a row of pods: "good", "busy" or "bad"."""
    if pod["status"] in ("Succeeded", "Completed") or (pod["containers"] and pod["ready"] == pod["containers"]):
        return "good"
    return "bad" if words_of(pod) else "busy"


def words_of(pod: Mapping[str, Any]) -> str:
    """Return what is wrong with a pod, "" for one that runs, starts or ends."""
    status, message = str(pod["status"]), str(pod["message"])
    if status in FINE:
        return ""
    if found := _NODES.match(message):
        reasons = re.split(r"\.\s|\.$", found[1])[0].split(", ")
        return ", ".join(dict.fromkeys(_COUNT.sub("", reason).rstrip(".") for reason in reasons))[:_WORDS_LENGTH_MAX]
    if message:
        return f"{status}: {message}"[:_WORDS_LENGTH_MAX]
    return "" if status in STARTING else status


def troubles_in(pods: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Trouble]:
    """Return the troubles of the pods by cluster, those of most pods first."""
    found: dict[str, list[str]] = {}
    for cluster, rows in pods.items():
        for pod in rows:
            if words := words_of(pod):
                found.setdefault(words, []).append(cluster)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))[:_TROUBLES_MAX]
    return [Trouble(words, len(clusters), tuple(dict.fromkeys(clusters))) for words, clusters in ordered]
