"""Warnings of a list that lacks objects of some clusters. Pure.

Clusters with the same problem share a warning: a lost region is one line, not a hundred.
"""

from collections.abc import Mapping
from typing import Final

from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import ApiError

_NAMES_MAX: Final = 10


def to_warnings(plural: str, problems: Mapping[str, BaseException], limit_s: float) -> list[str]:
    """Return one text per problem, with the clusters that have it; TimeoutError is no answer within `limit_s`."""
    by_text: dict[str, list[str]] = {}
    for cluster in sorted(problems):
        text = (
            _to_text(problems[cluster], limit_s)
            .replace(f'cluster "{cluster}"', "it")
            .replace(f"cluster {cluster}", "it")
        )
        by_text.setdefault(text, []).append(cluster)
    return [f"{plural} of {_names(clusters)} are missing: {text}" for text, clusters in by_text.items()]


def _to_text(problem: BaseException, limit_s: float) -> str:
    if isinstance(problem, TimeoutError):
        return f"no answer in {limit_s:g} s"
    return problem.message if isinstance(problem, ApiError) else str(problem)


def _names(clusters: list[str]) -> str:
    return f"{'cluster' if len(clusters) == 1 else 'clusters'} {first_of(clusters, _NAMES_MAX)}"
