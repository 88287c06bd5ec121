"""The PromQL of objectives, and the answers of Prometheus. Pure.

Each query is limited to the pods of one workload by matchers that come first and from us. What users write is checked
again here, because the rules come from an annotation, and every value is quoted: a text cannot leave its quotes.

Decision: docs/decisions/0141-objectives-name-metrics-not-queries.md
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from federation.features.waves.rules.objectives import Counts
from federation.planning.waves.metricsources import LABEL_NAME, SELECTOR, WINDOW, MetricSource
from federation.planning.waves.waverules import Objective

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]"
"""A letter of the random endings of names: no vowel, so that they spell no words."""
_POD_NAMES = {"Deployment": rf"-{_SUFFIX}{{1,10}}-{_SUFFIX}{{5}}", "StatefulSet": "-[0-9]+"}
_POD_NAME = f"-{_SUFFIX}{{5}}"
_NAME_LENGTH_MAX = 46
"""Longer names of workloads are cut in the names of their pods."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is measured: the pods of a workload."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Queries:
    """Two expressions with one value per cluster: all samples, and the bad ones; or the good ones among them."""

    total: str
    part: str
    is_part_good: bool = False


def build_queries(objective: Objective, source: MetricSource, workloads: Sequence[Workload], window_s: int) -> Queries:
    """Return the queries of an objective over a window that ends at the time of the query; ValueError.

    The workloads are of one namespace, and counted together.
    """
    own = _matchers(source, workloads)
    if objective.template:
        template = source.templates.get(objective.template)
        if template is None:
            raise ValueError(f"the source has no template {objective.template}")
        total, bad = (
            text.replace(SELECTOR, own).replace(WINDOW, f"{window_s}s") for text in (template.total, template.bad)
        )
        return Queries(total, bad)
    if not _METRIC_NAME.fullmatch(objective.metric):
        raise ValueError("the metric is no name of a metric")
    every = own + _written(objective.labels)
    if objective.seconds_max:
        good = every + "," + _matcher("le", _boundary(objective.seconds_max))
        return Queries(
            _increase(source, f"{objective.metric}_count", every, window_s),
            _increase(source, f"{objective.metric}_bucket", good, window_s),
            is_part_good=True,
        )
    return Queries(
        _increase(source, objective.metric, every, window_s),
        _increase(source, objective.metric, every + _written(objective.bad), window_s),
    )


def _increase(source: MetricSource, metric: str, matchers: str, window_s: int) -> str:
    return f"sum by ({source.cluster_label}) (increase({metric}{{{matchers}}}[{window_s}s]))"


def _matchers(source: MetricSource, workloads: Sequence[Workload]) -> str:
    pods = "|".join(map(_pods, workloads))
    return f"{source.namespace_label}={_quote(workloads[0].namespace)},{_matcher(source.pod_label, pods)}"


def _pods(workload: Workload) -> str:
    pods = re.escape(workload.name[:_NAME_LENGTH_MAX]).replace("\\-", "-")
    return pods + (".*" if len(workload.name) > _NAME_LENGTH_MAX else _POD_NAMES.get(workload.kind, _POD_NAME))


def _written(labels: Mapping[str, str]) -> str:
    for label in labels:
        if not LABEL_NAME.fullmatch(label) or label.startswith("__"):
            raise ValueError(f"{label[:63]} is no name of a label")
    return "".join(f",{_matcher(label, pattern)}" for label, pattern in sorted(labels.items()))


def _matcher(label: str, pattern: str) -> str:
    return f"{label}=~{_quote(pattern)}"


def _quote(text: str) -> str:
    return json.dumps(text)


def _boundary(seconds: str) -> str:
    """Return a pattern of a bucket's boundary, which is written with and without an ending .0."""
    whole, _, fraction = seconds.partition(".")
    fraction = fraction.rstrip("0")
    return rf"{whole}\.{fraction}0*" if fraction else rf"{whole}(\.0+)?"


def parse_vector(body: bytes, cluster_label: str) -> Mapping[str, float]:
    """Return the values by cluster of an instant query's answer; ValueError for another answer, or what is no count."""
    try:
        answer = json.loads(body)
        data = answer["data"]
        if answer["status"] != "success" or data["resultType"] != "vector":
            raise ValueError("the answer is no vector")  # one type of error for all answers
        pairs = [(str(each["metric"].get(cluster_label, "")), float(each["value"][1])) for each in data["result"]]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise ValueError("the answer is no vector of values") from None
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError(f"the answer has several values for one {cluster_label}")
    for cluster, value in values.items():
        if not math.isfinite(value) or value < 0:
            # Without it a count of bad samples would be 0, and the new template would pass.
            raise ValueError(f"the value of {cluster_label} {cluster or '(none)'} is {value:g}, which is no count")
    return values


def problem_of(status: int, body: bytes) -> str:
    """Return what a refusal says about the query; the text is Prometheus' own if it is about the query's form."""
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
    if isinstance(found, dict) and found.get("errorType") == "bad_data":
        return f"the query is refused: {str(found.get('error'))[:200]}"
    return f"the metrics source answers with HTTP status {status}"


def to_counts(queries: Queries, total: Mapping[str, float], part: Mapping[str, float]) -> dict[str, Counts]:
    """Return the counts by cluster. A cluster whose bucket of good samples does not exist has none."""
    found = {}
    for cluster, all_ in total.items():
        if not queries.is_part_good:
            found[cluster] = Counts(min(part.get(cluster, 0.0), all_), all_)
        elif cluster in part:
            found[cluster] = Counts(max(all_ - part[cluster], 0.0), all_)
    return found
