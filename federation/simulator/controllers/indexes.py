"""Completion indexes of an Indexed Job, and their text in the status (`0,2-4,6`). Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod."""


def parse_indexes(text: str, completions: int) -> set[int]:
    """Return the indexes below `completions` that the text lists."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Return the text of indexes: runs of three or more as `first-last`, everything else one by one."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)


def index_of(pod: Mapping[str, Any]) -> int:
    """Return the pod's completion index, -1 without one."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else -1
