"""A script of `fedctl twin` is read, or refused with the field that is wrong."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.sources import ROOT
from typer.testing import CliRunner

from federation.apimachinery.errors import ConfigurationError
from federation.cli.main import app
from federation.twin.script import Expectation, parse_script, read_script


def test_a_script_is_read_in_the_order_of_its_times() -> None:
    script = parse_script(
        {
            "steps": [
                {"at": "2m", "apply": "web.yaml", "times": 11, "every": "6s"},
                {"at": "30s", "fault": "spotEnds"},
                {"at": "1m", "fault": "nodesLost", "selector": "tier=edge", "nodes": 2},
            ],
            "expect": [{"at": "5m", "holds": 0}, {"costPerHour": 1.5}],
        },
        Path("folder"),
    )
    assert [str(step) for step in script.steps] == [
        "spotEnds: all clusters",
        "nodesLost: tier=edge, 2 nodes",
        "apply web.yaml, 11 times",
    ]
    assert script.end_s == 120 + 60 + 600
    assert script.reaching(4_000).end_s == 4_600
    assert script.expectations == (Expectation(300, "holds", 0), Expectation(float("inf"), "costPerHour", 1.5))
    assert parse_script({"end": "1h"}, Path()).reaching(9_000).end_s == 3_600


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([], "not a script"),
        ({"stesp": []}, "stesp"),
        ({"steps": [{"fault": "clusterDies"}]}, "at"),
        ({"steps": [{"at": "soon", "cordon": "east"}]}, "steps[0].at: 'soon'"),
        ({"steps": [{"at": "-1m", "cordon": "east"}]}, "steps[0].at: '-1m' is negative"),
        ({"steps": [{"at": "1m"}]}, "steps[0]: give exactly one of fault"),
        ({"steps": [{"at": "1m", "cordon": "east", "apply": "a"}]}, "steps[0]: give exactly one"),
        ({"steps": [{"at": "1m", "fault": "flood", "cluster": "east"}]}, "steps[0].fault: 'flood': it must be one of"),
        ({"steps": [{"at": "1m", "fault": "clusterDies"}]}, "steps[0]: clusterDies needs cluster, region or selector"),
        ({"steps": [{"at": "1m", "fault": "regionDies", "cluster": "east"}]}, "steps[0].region: regionDies needs it"),
        ({"steps": [{"at": "1m", "fault": "nodesLost", "cluster": "east"}]}, "steps[0].nodes: nodesLost needs"),
        ({"steps": [{"at": "1m", "fault": "recovers", "cluster": "a", "region": "b"}]}, "give one of cluster, region"),
        ({"steps": [{"at": "1m", "cordon": "east", "region": "eu"}]}, "steps[0].region: only a fault has it"),
        ({"steps": [{"at": "1m", "fault": "recovers", "selector": "a in (b"}]}, "steps[0].selector"),
        ({"steps": [{"at": "1m", "apply": "a", "times": 0}]}, "steps[0].times"),
        (
            {"steps": [{"at": "1m", "scale": {"kind": "Deployment", "name": "web", "replicas": -1}}]},
            "must not be negative",
        ),
        ({"end": "1m", "steps": [{"at": "2m", "cordon": "east"}]}, "end: 1m is before the last step, at 120s"),
        ({"end": "1m", "expect": [{"at": "2m", "holds": 0}]}, "expect[0].at: 2m is after the end, 60s"),
        ({"expect": [{"at": "1s"}]}, "expect[0]: give one of unplacedReplicas"),
        ({"expect": [{"moves": 1}]}, "expect[0].moves: it must be one of"),
        ({"expect": [{"holds": "few"}]}, "expect[0].holds: it must be a number"),
    ],
)
def test_what_is_wrong_with_a_script_is_named(source: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_script(source, Path())
    assert problem in str(error.value)


def test_a_file_that_is_no_script_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    for content, problem in ((b"\xff\xfe", "not UTF-8"), (b"end: 1m\nend: 2m", "already set"), (b"a: [", "yaml")):
        file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=problem):
            read_script(file)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_script(tmp_path / "absent.yaml")
    assert read_script(ROOT / "examples/twin/cluster-dies.yaml").end_s == 1_800


def test_wrong_options_are_errors_before_anything_is_copied(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["twin", "--times", "0"])
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["twin", "--from", str(tmp_path / "absent.backup")])
    assert result.exit_code == 2
