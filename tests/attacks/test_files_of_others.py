"""Attack: a file of somebody else ends `fedctl` or the control plane: too deep, no text, without end, not our tables."""

import io
import json
import os
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from federation.agent.agentfiles import Identity
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.yamltext import TooDeepError, load_yaml
from federation.apiserver.audit import auditpolicy
from federation.apiserver.store import maintenance
from federation.cli.statedirectory import StateDirectory
from federation.client.kubeconfig import load_kubeconfig
from federation.features.clusterrules.rules.states import entries_of
from federation.features.topologyspreadplan import planoutput
from federation.planning.cost.ratelist import parse_rates
from federation.plans import recordfiles
from federation.settingfiles import read_providers, read_sources
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.manifests import read_manifests

# libyaml ends the process from about 20,000 levels on. With these, a parser without a limit gives another answer.
DEEP = b"[" * 200 + b"]" * 200
VERY_DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "text", [DEEP, VERY_DEEP, b"a: " * 10_000, b"- " * 100_000], ids=["200", "open", "keys", "items"]
)
def test_yaml_of_many_levels_is_an_error_and_no_end_of_the_process(text: bytes) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


def test_a_document_of_as_many_levels_as_an_object_may_have_is_read() -> None:
    assert load_yaml(b"[" * 128 + b"]" * 128)
    with pytest.raises(TooDeepError, match="more than 128 levels"):
        load_yaml(b"[" * 129 + b"]" * 129)


def agent_host(path: Path) -> Any:
    path.rename(path.parent / "host.json")
    return Identity(path.parent).host()


def state_directory(path: Path) -> Any:
    path.rename(path.parent / "version.json")
    return StateDirectory.open(path.parent)


READERS: dict[str, Callable[[Path], Any]] = {
    "kubeconfig": load_kubeconfig,
    "audit policy": auditpolicy.load,
    "metric sources": lambda path: read_sources(str(path)),
    "cluster providers": lambda path: read_providers(str(path)),
    "manifest": lambda path: read_manifests([str(path)]),
    "records": recordfiles.read_records,
    "agent": agent_host,
    "state directory": state_directory,
}


@pytest.mark.parametrize("text", [DEEP, VERY_DEEP, b"\xff\xfe"], ids=["deep", "very-deep", "no-text"])
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_too_deep_or_no_text_is_an_error_that_names_it(tmp_path: Path, reader: str, text: bytes) -> None:
    file = tmp_path / "of-others"
    file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=r"of-others|host\.json|version\.json") as found:
        READERS[reader](file)
    assert text != DEEP or "mapping" not in str(found.value), "it was read"


@pytest.mark.parametrize("text", [DEEP, VERY_DEEP, b"\xff\xfe"], ids=["deep", "very-deep", "no-text"])
async def test_a_plan_file_is_read_as_every_manifest(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=r"plan\.yaml"):
        await planoutput.plan(KubeconfigContext(tmp_path, ""), str(file), "default", "table")


@pytest.mark.parametrize("text", [b"a: \xff", b"\xff\xfea\x00"])
def test_standard_input_that_is_no_text_is_an_error(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match="standard input: it is not UTF-8"):
        read_manifests(["-"])


def test_input_without_end_is_read_up_to_its_limit_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bytes((64 << 20) + 1))))
    with pytest.raises(ConfigurationError, match="standard input: larger than"):
        read_manifests(["-"])
    with pytest.raises(ConfigurationError, match="/dev/zero: larger than"):
        read_manifests(["/dev/zero"])


def test_a_line_without_end_is_no_record(tmp_path: Path) -> None:
    file = tmp_path / "records"
    file.touch()
    os.truncate(file, 1 << 40)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError, match="has no records"):
            recordfiles.read_records(file)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("number", ["x", 1e400, [1], None])
def test_a_record_with_an_odd_number_is_no_record(tmp_path: Path, number: object) -> None:
    item = {"segment": 1, "number": number, "firstUs": 1, "lastUs": 1, "decisions": 1, "content": ""}
    file = tmp_path / "records"
    file.write_text(json.dumps({"format": "federation-replay/1"}) + "\n" + json.dumps(item) + "\n")
    with pytest.raises(ConfigurationError, match="has no records"):
        recordfiles.read_records(file)


def test_rates_of_many_levels_are_refused_as_a_whole() -> None:
    with pytest.raises(ValueError, match="the answer is not JSON"):
        parse_rates(VERY_DEEP)


def test_an_annotation_of_many_levels_counts_as_calm() -> None:
    assert entries_of(VERY_DEEP.decode()) == {}


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    sqlite3.connect(file).execute("create table other (a)").connection.close()
    with (
        maintenance.reading(f"sqlite:///{file}") as connection,
        pytest.raises(ConfigurationError, match="table store_log"),
    ):
        maintenance.reflected(connection, "store_log")
