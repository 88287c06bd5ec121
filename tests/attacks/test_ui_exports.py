"""Attacks on exported lists: formulas in names and messages, other users' objects, and unknown formats."""

import csv
import io
from pathlib import Path

import yaml
from tests.attacks.test_ui_actions import BOB, a_site, browser
from tests.support.manifests import a_deployment, a_policy

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.web.ui.exports import Table, to_cell, to_yaml

LISTS = (
    "objects", "policies", "namespaces", "fleet", "attention", "decisions", "capacity", "rollouts", "attention?cause=x",
)  # fmt: skip
FORMULA = '=HYPERLINK("http://evil.example","click")'


async def test_lists_are_files_without_formulas_and_with_the_users_rights(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _):
        labelled = a_policy({"east": 1}, name="odd")
        labelled["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": FORMULA}]
        await world.create(PROPAGATION_POLICIES, labelled)
        await world.create(DEPLOYMENTS, a_deployment("other", replicas=1))
        await world.settle()
        async with browser(parts) as page, browser(parts, BOB) as bob:
            seen = ""
            for name in LISTS:
                address = f"/ui/{name}{'&' if '?' in name else '?'}export="
                answer = await page.get(address + "csv")
                assert answer.status_code == 200, (name, answer.text[-300:])
                assert answer.headers["content-type"] == "text/csv; charset=utf-8"
                assert answer.headers["content-disposition"].startswith('attachment; filename="')
                assert answer.headers["x-content-type-options"] == "nosniff"
                rows = list(csv.reader(io.StringIO(answer.text)))
                assert len({len(row) for row in rows}) == 1
                assert not [cell for row in rows[1:] for cell in row if cell.startswith(("=", "+", "@"))], name
                seen += answer.text
                written = await page.get(address + "yaml")
                assert len(yaml.safe_load(written.text)) == len(rows) - 1, name
                other = await page.get(address + "html")
                assert other.headers["content-type"].startswith("text/html"), "an unknown format is the page"
                refused = await bob.get(address + "csv")
                assert "content-disposition" not in refused.headers or refused.text.count("\n") == 1, name
                assert "east" not in refused.text, name
            assert "'=HYPERLINK" in seen, "the kind of the policy is in a file, as text"
            assert "other" in seen
        async with browser(parts) as page:
            page.cookies.clear()
            assert (await page.get("/ui/objects?export=csv")).status_code == 303


def test_a_cell_shows_characters_that_reorder_text_as_their_codes() -> None:
    """Otherwise a reason or an owner shows an approver other words in his spreadsheet."""
    assert to_cell("approved by \u202emoor") == "approved by \\u202emoor"
    assert to_cell(["a\u2066", "b"]) == "a\\u2066, b"


def test_a_yaml_file_shows_characters_that_reorder_text_as_their_codes_and_keeps_the_value() -> None:
    reason = "approved by \u202emoor"
    text = to_yaml(Table("holds", ["reason", "clusters"], [[reason, ["a\u2066", "é"]]]))
    assert text.isascii()
    assert yaml.safe_load(text) == [{"reason": reason, "clusters": ["a\u2066", "é"]}]
    assert "é" in to_yaml(Table("holds", ["reason"], [["é"]])), "other letters stay as they are"
