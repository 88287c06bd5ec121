"""Links of the documentation site that would leave it."""

from types import SimpleNamespace

import pytest
from tools.docs_hooks import on_page_markdown


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("install.md", "see [the chart](../charts/federation)", "see the chart (`charts/federation`)"),
        ("reference/cost.md", "[`01.yaml`](../../examples/cost/01.yaml)", "`examples/cost/01.yaml`"),
        ("reference/cost.md", "[failover](../failover.md#drain)", "[failover](../failover.md#drain)"),
        ("ui.md", "![List](ui/objects-light.png)", "![List](ui/objects-light.png)"),
        ("README.md", "[how](../benchmarks/README.md#status)", "how (`benchmarks/README.md`)"),
    ],
)
def test_links_out_of_the_site_become_names_of_files(page: str, text: str, expected: str) -> None:
    assert on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=page))) == expected
