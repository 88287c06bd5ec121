"""JUnit reports, as pytest and Kubernetes' suite write them."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET


def read_report(report: Path) -> Iterator[tuple[str, str, str]]:
    """Yield class, name and failure of each test that was not skipped; the failure of a passed test is ""."""
    for case in ET.parse(report).iter("testcase"):
        problem = case.find("failure")
        problem = case.find("error") if problem is None else problem
        if case.find("skipped") is None:
            failure = "" if problem is None else problem.get("message") or problem.text or "failed"
            yield case.get("classname", ""), case.get("name", ""), failure[:500]
