"""The Dockerfile, the unit of systemd and the tool that makes the image small agree with what they package."""

import marshal
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import CodeType
from typing import Any

import orjson
import pytest
import typer
from tests.support.vectors import ROOT
from tools import slim

from federation.cli.main import app

UNIT = ROOT / "packaging" / "systemd" / "federation.service"


def instructions() -> list[tuple[int, str, str]]:
    """Return (stage, instruction, arguments) of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found, stage = [], -1
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if not word or word.startswith("#"):
            continue
        stage += word == "FROM"
        found.append((stage, word, " ".join(rest.split())))
    return found


def value_of(instruction: str) -> Any:
    """Return the JSON value of an instruction of the last stage."""
    (text,) = [rest for _, word, rest in instructions() if word == instruction]
    return orjson.loads(text[text.index("[") :])


def sources() -> list[str]:
    """Return what the build copies from the checkout."""
    copies = [rest.split() for _, word, rest in instructions() if word == "COPY" and "--from" not in rest]
    return [source for *listed, _ in copies for source in listed]


def check_command(line: list[str]) -> None:
    """Check that `fedctl` accepts the command line."""
    program, name, *arguments = line
    assert Path(program).name == "fedctl"
    group: Any = typer.main.get_command(app)
    group.get_command(None, name).make_context(name, arguments)


def test_the_build_copies_what_exists_and_what_the_wheel_needs() -> None:
    copied = sources()
    assert all((ROOT / source).exists() for source in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [*wheel["packages"], *wheel["force-include"], project["project"]["readme"]]
    assert {"pyproject.toml", "constraints.txt", *needed, *project["project"]["license-files"]} <= set(copied)
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(kept) == sorted(copied), "the build context is what the build copies"


def test_the_image_runs_the_server_without_privileges() -> None:
    last = max(stage for stage, *_ in instructions())
    words = [word for stage, word, _ in instructions() if stage == last]
    assert "RUN" not in words, "the last stage has no shell"
    check_command([*value_of("ENTRYPOINT"), *value_of("CMD")])
    check_command(value_of("HEALTHCHECK"))
    (user,) = [rest for _, word, rest in instructions() if word == "USER"]
    assert user == "65532:65532"
    assert "--dir=/var/lib/federation" in value_of("CMD")
    assert set(value_of("VOLUME")) == {"/var/lib/federation", "/tmp"}  # in the image


def test_both_stages_have_the_same_python() -> None:
    builder, runner = [rest.split()[0] for _, word, rest in instructions() if word == "FROM"]
    assert builder == "python:3.11-bookworm"
    assert runner.startswith("gcr.io/distroless/python3-debian12"), "Debian 12, bookworm, has Python 3.11"


def test_the_chart_uses_the_user_and_the_folders_of_the_image() -> None:
    helpers = (ROOT / "charts/federation/templates/_helpers.tpl").read_text()
    pod = (ROOT / "charts/federation/templates/_pod.tpl").read_text()
    assert "runAsUser: 65532" in helpers
    for folder in value_of("VOLUME"):
        assert f"mountPath: {folder}}}" in pod


def test_a_package_works_without_its_sources(tmp_path: Path) -> None:
    package = tmp_path / "kubernetes"
    (package / "aio").mkdir(parents=True)
    (package / "__init__.py").write_text("from . import aio\n")
    (package / "aio" / "__init__.py").write_text('"""Text."""\nANSWER = 42\n')
    (package / "aio" / "client_test.py").write_text("1 / 0\n")
    (package / "aio" / "client.pyi").write_text("")
    (tmp_path / "library" / "tests").mkdir(parents=True)
    slim.remove_unneeded(tmp_path)
    slim.keep_bytecode_only(tmp_path, "kubernetes")
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"__init__.pyc"}
    assert not (tmp_path / "library" / "tests").exists()
    code = "import kubernetes; print(kubernetes.aio.ANSWER, kubernetes.aio.__doc__)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "42 None\n"
    assert sources_of(tmp_path / "kubernetes/aio/__init__.pyc") == "/opt/federation/kubernetes/aio/__init__.py"


def sources_of(bytecode: Path) -> str:
    """Return the source that bytecode names: tracebacks show it, and the folder of a build must not be in an image."""
    code: CodeType = marshal.loads(bytecode.read_bytes()[16:])  # compiled by this test
    return code.co_filename


def test_the_modules_of_the_tree_are_compiled_and_not_those_of_the_current_folder(tmp_path: Path) -> None:
    for name in ("federation/__init__.py", "federation/cli.py", "federation/other.py", "federation_plugins/one.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    slim.compile_started(tmp_path, "federation.cli")
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert compiled == {"__init__", "cli", "one"}
    sources = {sources_of(path) for path in tmp_path.rglob("*.pyc")}
    assert {Path(source).parent.as_posix() for source in sources} == {
        "/opt/federation/federation",
        "/opt/federation/federation_plugins",
    }


def settings_of_unit() -> list[tuple[str, str]]:
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def test_the_unit_starts_the_server_as_a_user_of_its_own() -> None:
    settings = dict(settings_of_unit())
    check_command(settings["ExecStart"].split())
    assert settings["DynamicUser"] == settings["NoNewPrivileges"] == settings["PrivateUsers"] == "yes"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["ProtectSystem"] == "strict"
    assert settings["WantedBy"] == "multi-user.target"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_finds_the_unit_well_protected() -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
