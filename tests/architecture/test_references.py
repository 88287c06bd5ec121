"""Generated references, dashboard and alerts are up to date and name only metrics that exist."""

import re

import pytest
from tests.support.sources import ROOT
from tools import generate_monitoring, generate_references
from tools.monitoring import ALERTS, ROWS

_METRIC = re.compile(r"\b(?:federation|apiserver)_[a-z0-9_]+")
_PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if "federation_" in page.read_text() and "/decisions/" not in str(page)
)


def series() -> set[str]:
    found = set()
    for name, kind, _, _ in generate_references.metrics():
        found |= {f"{name}{suffix}" for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else set()
        found.add(name)
    return found


@pytest.mark.parametrize("tool", [generate_monitoring, generate_references])
def test_generated_files_are_up_to_date(tool: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--check"]) == 0, capsys.readouterr().out  # type: ignore[attr-defined]  # both have it


def test_the_dashboard_and_the_alerts_name_metrics_that_exist() -> None:
    queries = [query for _, panels in ROWS for panel in panels for query, _ in panel.queries]
    named = {name for text in [*queries, *(alert.expression for alert in ALERTS)] for name in _METRIC.findall(text)}
    assert len(named) > 15
    assert named <= series()


def test_every_label_in_an_expression_is_one_of_its_metric() -> None:
    labels = {name: set(re.findall(r"`(\w+)`", text)) for name, _, text, _ in generate_references.metrics()}
    for alert in ALERTS:
        for metric, selector in re.findall(r"((?:federation)_\w+)\{([^}]*)\}", alert.expression):
            assert set(re.findall(r"(\w+)[=!~]+\"", selector)) <= labels[metric.removesuffix("_bucket")], alert.name


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_the_documentation_names_metrics_that_exist(page: object) -> None:
    known = series() | {"federation_plugins", "federation_schema", "federation_store"}
    text = page.read_text()  # type: ignore[attr-defined]  # a path
    unknown = {name for name in _METRIC.findall(text) if name not in known and not text.count(f"`{name}…")}
    assert not unknown
