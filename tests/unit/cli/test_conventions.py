"""What all commands have in common: options before the command, errors of one line, exit codes, few imports."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from federation.apimachinery.errors import ConfigurationError
from federation.cli import main
from federation.cli.main import app
from federation.terminal.kubeconfigcontext import KubeconfigContext

_SLOW = ("asyncio", "yaml", "rich", "aiohttp", "uvloop", "pydantic", "ssl", "sqlalchemy", "structlog", "kubernetes")
_LATER = ("pydantic", "fastapi", "wsproto", "jinja2", "alembic", "kubernetes", "httpx", "opentelemetry")
_EMPTY_DIRECTORY = (
    "fedctl: Invalid value for '--dir': the name is empty; give the directory for state, keys and kubeconfigs"
    " (see: fedctl serve --help)"
)


def kubeconfig(folder: Path, namespace: str = "") -> Path:
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    document = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "one", "context": context}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def run_main(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run fedctl as its entry point does; return the exit code and standard error."""
    with pytest.raises(SystemExit) as ended:
        main.main(arguments)
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nonsense"], 2, "fedctl: No such command 'nonsense' (see: fedctl --help)"),
        (["diff"], 2, "fedctl: Missing argument 'KIND/NAME' (see: fedctl diff --help)"),
        (["clusters", "--nonsense"], 2, "fedctl: No such option: --nonsense (see: fedctl clusters --help)"),
        (["rollout", "stat"], 2, "fedctl: No such command 'stat'. Did you mean 'status'? (see: fedctl rollout --help)"),
        (
            ["clusters", "east", "-w"],
            2,
            "fedctl: Invalid value: NAME excludes --selector and --watch (see: fedctl clusters --help)",
        ),
        (["serve", "--dir", ""], 2, _EMPTY_DIRECTORY),
        (["--kubeconfig", "/none", "clusters"], 1, "fedctl: /none does not exist; give the path of the kubeconfig"),
    ],
)
def test_an_error_is_one_line(
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, text = run_main(arguments, capsys)
    assert (found, text.strip()) == (code, message)
    assert text.count("\n") == 1


def test_a_group_without_a_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run_main(["rollout"], capsys)
    assert code == 2
    assert text.startswith("Usage: fedctl rollout")


@pytest.mark.parametrize("command", [["clusters"], ["rollout", "status", "deployment/web"]])
def test_options_of_the_federation_may_stand_before_the_command(command: list[str]) -> None:
    before = CliRunner().invoke(app, ["--kubeconfig", "/none", *command]).exception
    behind = CliRunner().invoke(app, [*command, "--kubeconfig", "/none"]).exception
    assert str(before) == str(behind) == "/none does not exist; give the path of the kubeconfig"
    both = CliRunner().invoke(app, ["--kubeconfig", "/first", *command, "--kubeconfig", "/none"]).exception
    assert str(both) == str(behind)


def test_the_version_is_an_option_as_well() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == CliRunner().invoke(app, ["version"]).stdout


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    assert KubeconfigContext(kubeconfig(tmp_path, "shop"), "").namespace == "shop"
    assert KubeconfigContext(kubeconfig(tmp_path), "").namespace == "default"
    assert KubeconfigContext(kubeconfig(tmp_path), "none").namespace == "default"


def test_the_context_is_looked_up_in_the_kubeconfig(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--context", "two", "clusters", "--kubeconfig", str(kubeconfig(tmp_path))])
    assert isinstance(result.exception, ConfigurationError)
    assert 'contexts: has no "two"; there are: one' in str(result.exception)


def imported(program: str, modules: tuple[str, ...], code: int = 0) -> str:
    """Run a program in a process of its own, which exits with the code; return those of the modules it imported."""
    printed = f"import atexit, sys; atexit.register(lambda: print([m for m in {modules} if m in sys.modules]))"
    command = [sys.executable, "-c", f"{printed}; {program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_command_imports_only_what_it_needs() -> None:
    """The imports are nearly all of the time of short commands, and of completion."""
    assert imported("from federation.cli import main; main.main(['version'])", _SLOW) == "[]"


_ENGINE = (
    "federation.scheduling.engine", "federation.apiserver.semantics.kinds.kinds", "federation.features.catalogue",
    "prometheus_client", "sqlalchemy", "cryptography", "structlog", "pydantic", "kubernetes", "httpx",
)  # fmt: skip
_CLIENT = ("aiohttp", *_ENGINE)
_NOWHERE = ["--kubeconfig", "/none"]


@pytest.mark.parametrize(
    ("words", "code", "unneeded"),
    [
        (["--help"], 0, ("federation.cli.why", "federation.cli.start", *_SLOW)),
        (["gte", "pods"], 2, ("federation.cli.members.getting", *_SLOW)),
        (["serve", "--help"], 0, _SLOW),
        (["get", "--help"], 0, ("rich", *_CLIENT)),
        (["logs", "--help"], 0, ("rich", *_CLIENT)),
        (["why", "--help"], 0, _CLIENT),
        (["holds", "--help"], 0, _CLIENT),
        (["clusters", "--help"], 0, _CLIENT),
        (["get", "pods", *_NOWHERE], 1, ("rich", *_CLIENT)),
        (["why", *_NOWHERE], 1, _CLIENT),
        (["undo", "deployment/web", *_NOWHERE], 1, _CLIENT),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_light_command_imports_neither_the_engine_nor_other_commands(
    words: list[str], code: int, unneeded: tuple[str, ...]
) -> None:
    assert imported(f"from federation.cli import main; main.main({words})", unneeded, code) == "[]"


def test_completing_a_command_imports_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = {"_FEDCTL_COMPLETE": "complete_bash", "COMP_WORDS": "fedctl ", "COMP_CWORD": "1"}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    commands = ("federation.cli.why", "federation.cli.members.getting", "federation.cli.start", *_CLIENT)
    assert imported("from federation.cli import main; main.main([])", commands) == "[]"


def test_an_explanation_is_printed_without_the_engine_that_made_it() -> None:
    modules = ("federation.scheduling.engine", "federation.scheduling.policyspec", "prometheus_client", "croniter")
    assert imported("import federation.cli.why", modules) == "[]"


def test_a_start_does_not_import_what_serves_nothing_yet() -> None:
    """The imports are most of the time of a start."""
    refused = "from federation.cli import main; main.main(['serve', '--dir', '/dev/null', '--port', '7443'])"
    assert imported(f"import federation.simulator.__main__; {refused}", _LATER, code=1) == "[]"
