"""Write `constraints.txt`: every package of every installation, with the hashes of all its files, and no addresses.

    .venv/bin/python tools/lock.py              keep the versions, learn their hashes, add new dependencies
    .venv/bin/python tools/lock.py --upgrade    take the newest versions

It needs uv, which resolves for all systems and Python versions at once. The comment above a package names what needs
it: `fedctl`, an extra of pyproject.toml, or `build`. `tools/install.py` installs these, and pip refuses other files.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = ("docs", "otel", "postgres", "test")
HEADER = "# Made by `make lock`. What needs a package stands above it; `tools/install.py` installs these files only.\n"
ENTRY = re.compile(r"^[A-Za-z0-9].*==.*(?:\n .*)*\n", re.MULTILINE)


def resolve(uv: str, pins: str, source: str, *arguments: str) -> set[str]:
    """Return the entries that a file of requirements needs, in the versions of `pins`."""
    command = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--python-version", "3.11", "--constraint", "-", *arguments, source]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(pins)
        constraints.flush()
        command[command.index("-")] = constraints.name
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # fixed arguments
    if done.returncode:
        raise SystemExit(done.returncode)
    return set(ENTRY.findall(done.stdout))


def versions_of(text: str) -> str:
    """Return the pins without hashes and markers, which uv takes as constraints."""
    return "".join(f"{found[0]}\n" for found in re.finditer(r"^[A-Za-z0-9._-]+==[^ ;\n]+", text, re.MULTILINE))


def has_marker(entry: str) -> bool:
    """Return whether an entry is for some systems only; what one extra needs everywhere stands once, for all."""
    return " ; " in entry.partition("\n")[0]


def main(arguments: list[str]) -> None:
    """Write the file."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise SystemExit(f"lock: uv is missing; install it, for example with: {sys.executable} -m pip install uv")
    pins = "" if "--upgrade" in arguments else versions_of(CONSTRAINTS.read_text())
    everything = resolve(uv, pins, "pyproject.toml", "--all-extras")
    pins = versions_of("".join(everything))
    needs = {"fedctl": resolve(uv, pins, "pyproject.toml")}
    needs |= {extra: resolve(uv, pins, "pyproject.toml", "--extra", extra) - needs["fedctl"] for extra in EXTRAS}
    with tempfile.NamedTemporaryFile("w", suffix=".in") as build:
        build.write("hatchling\n")
        build.flush()
        needs["build"] = resolve(uv, pins, build.name)
    everywhere = [entry for entries in needs.values() for entry in entries if not has_marker(entry)]
    plain = {entry.partition("==")[0]: entry for entry in everywhere}
    needs = {name: {plain.get(entry.partition("==")[0], entry) for entry in entries} for name, entries in needs.items()}
    lines = [HEADER]
    for entry in sorted(set().union(*needs.values()), key=str.lower):
        lines += [f"# {', '.join(name for name, entries in needs.items() if entry in entries)}\n", entry]
    CONSTRAINTS.write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
