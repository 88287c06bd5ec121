"""`fedctl topology plan` with a manifest: what it prints, its exit code, and one line per error."""

import re
from pathlib import Path

import orjson
import pytest
import yaml
from tests.support.vectors import ROOT
from typer.testing import CliRunner

from federation.apimachinery.errors import ConfigurationError
from federation.cli.main import app

FOLDER = ROOT / "examples" / "seeds" / "002"
PAGE = ROOT / "docs" / "reference" / "topologyspreadplan.md"


HEAD = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: TopologySpreadPlan\nmetadata: {name: p}\n"
SPEC = (
    HEAD.replace("{", "{{").replace("}", "}}")
    + """
spec: {{selector: {{matchLabels: {{a: b}}}}, shardLabel: c, zones: [{{{zone}}}]}}
"""
)


def plan(*arguments: str, text: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(app, ["topology", "plan", *arguments], input=text)
    if isinstance(done.exception, ConfigurationError):
        raise done.exception
    return done.exit_code, done.stdout


def test_the_reference_shows_what_the_command_prints() -> None:
    code, printed = plan(str(FOLDER / "plan.yaml"))
    shown = re.search(r"\$ fedctl topology plan examples/seeds/002/plan.yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    assert (code, printed) == (0, shown[1])


def test_stateful_sets_of_the_manifest_are_named() -> None:
    text = (FOLDER / "plan.yaml").read_text() + "---\n" + (FOLDER / "shards.yaml").read_text()
    _, printed = plan("-", text=text)
    assert [line.split()[0] for line in printed.splitlines()[-3:]] == [f"rediscluster-3az-6379-{n}" for n in range(3)]


def test_json_has_every_fact() -> None:
    _, printed = plan(str(FOLDER / "explicit-limits.yaml"), "-o", "json")
    document = orjson.loads(printed)
    assert document["limits"] == {"node": 5, "zone": 8}
    assert document["verdict"]["worstCase"] == {"node": 7, "zone": 9}
    assert document["findings"] == []


def test_a_refused_plan_and_shares_of_clusters(tmp_path: Path) -> None:
    manifest = yaml.safe_load((FOLDER / "plan.yaml").read_text())
    manifest["spec"]["replicas"] = 4
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(manifest))
    code, printed = plan(str(tmp_path / "plan.yaml"))
    assert (code, "Refused: 4 pods of a shard need 4 zones" in printed) == (1, True)
    manifest["spec"]["replicas"] = 2
    for zone, cluster in zip(manifest["spec"]["zones"], ("east", "east", "west"), strict=True):
        zone["cluster"] = cluster
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(manifest))
    code, printed = plan(str(tmp_path / "plan.yaml"))
    assert (code, printed.splitlines()[-1].split()[:3]) == (0, ["west", "2", "zoneC"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}", "expected one TopologySpreadPlan, found 0"),
        ("kind: ConfigMap", "apiVersion: Required value"),
        ("- kind: TopologySpreadPlan", "a manifest is a mapping, not a list"),
        ("{", "while parsing a flow node"),
        (HEAD + "spec: {}", "spec.selector: Field required"),
        (SPEC.format(zone="name: z"), "zone z: give the number of its nodes"),
        (SPEC.format(zone="name: z, nodes: 1"), "give the number of shards"),
    ],
)
def test_a_manifest_that_cannot_be_planned_is_an_error_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        plan("-", text=text)
    with pytest.raises(ConfigurationError, match="No such file"):
        plan("missing.yaml")
