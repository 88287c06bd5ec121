"""The administrator's list of Prometheus servers that gates of rollouts may query. Pure.

Users of a namespace name a source of this list, and never an address or a query. What they write becomes label matchers
beside ours, which choose the namespace and the workload (`features/waves/rules/promql.py`). A template of the list is
free PromQL that the administrator wrote.

Reference: docs/reference/rollout.md#objectives
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from federation.apimachinery.errors import ConfigurationError

SELECTOR, WINDOW = "$selector", "$window"
"""What templates contain: the matchers of the workload, and the time over which is counted, such as 300s."""
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SOURCES_MAX = 100


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two PromQL expressions with one value per cluster: all samples of the window, and the bad ones among them."""

    total: str
    bad: str


class MetricSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One Prometheus server, or another one with its HTTP API, that has the metrics of members."""

    url: str
    token_file: str = ""
    """A file with a bearer token, which is read for each query."""
    ca_file: str = ""
    namespaces: tuple[str, ...] = ()
    """Whose workloads may be measured; empty for all."""
    cluster_label: str = "cluster"
    """The label with the member's name."""
    namespace_label: str = "namespace"
    pod_label: str = "pod"
    scrape_seconds: int = 30
    """Time between two scrapes: a rate needs two."""
    templates: dict[str, Template] = {}

    def serves(self, namespace: str) -> bool:
        """Return whether workloads of a namespace may be measured."""
        return not self.namespaces or namespace in self.namespaces


Sources = Mapping[str, MetricSource]
NO_SOURCES: Sources = MappingProxyType({})


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    sources: dict[str, MetricSource]


def parse_sources(document: Any, *, setting: str) -> Sources:
    """Return the sources by name; ConfigurationError names the setting and the field of one that cannot work."""
    try:
        sources = msgspec.convert(document, _Document).sources
    except msgspec.ValidationError as problem:
        raise ConfigurationError(f"{setting}: {problem}") from problem
    if len(sources) > _SOURCES_MAX:
        raise ConfigurationError(f"{setting}: more than {_SOURCES_MAX} sources")
    for name, source in sources.items():
        for problem_text in _problems(source):
            raise ConfigurationError(f"{setting}: sources.{name}.{problem_text}")
    return sources


def _problems(source: MetricSource) -> Iterable[str]:
    if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", source.url):
        yield "url must be http:// or https:// with a host and no query, such as https://prometheus.example.com"
    if not 1 <= source.scrape_seconds <= 3600:  # an hour
        yield "scrapeSeconds must be between 1 and 3600"
    labels = {
        "clusterLabel": source.cluster_label,
        "namespaceLabel": source.namespace_label,
        "podLabel": source.pod_label,
    }
    for field, label in labels.items():
        if not LABEL_NAME.fullmatch(label):
            yield f"{field} must be a label's name of letters, digits and underscores"
    for name, template in source.templates.items():
        for field, text in (("total", template.total), ("bad", template.bad)):
            if SELECTOR not in text or WINDOW not in text:
                yield f"templates.{name}.{field} must contain {SELECTOR} and {WINDOW}"
