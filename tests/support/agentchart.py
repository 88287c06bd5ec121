"""The agent's chart, rendered by Helm's own library."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from helm_python import chart as helm_chart

from tests.support.vectors import ROOT

CHART = ROOT / "charts" / "federation-agent"
NAMESPACE = "kube-admiral-system"
TOKEN = "fedagent1.made-up"


@cache
def loaded() -> helm_chart.Chart:
    """Return the chart."""
    return helm_chart.Chart.load(str(CHART))


def render(values: Mapping[str, Any], namespace: str = NAMESPACE) -> dict[tuple[str, str], Any]:
    """Return the rendered objects by kind and name."""
    loaded().validate_schema(dict(values))
    texts = loaded().render(dict(values), name="agent", namespace=namespace)
    documents = [
        document
        for file, text in texts.items()
        if not file.endswith("NOTES.txt")
        for document in yaml.safe_load_all(text)
        if document
    ]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}
