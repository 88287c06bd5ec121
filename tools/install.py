"""Install this checkout into the virtual environment of the interpreter that runs this, and show how far it is.

    .venv/bin/python tools/install.py                      what `fedctl` needs
    .venv/bin/python tools/install.py test                 and what tests need; any extras of pyproject.toml
    python tools/install.py --wheel FILE.whl postgres      a wheel of this version instead of the checkout
    python tools/install.py --target FOLDER postgres       into a folder

Other packages are those in `constraints.txt`, and only files with the hashes there; nothing is resolved, and nothing
else is downloaded to build this project. It uses uv where it is installed, else pip. Our modules are compiled at once,
and of libraries those that a start imports: most modules of the Kubernetes client never are, and compiling them all
takes longer than everything else. Without this, each of several processes that start at the same time would compile
them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"^# (.+)\n([A-Za-z0-9].*(?:\n .*)*\n)", re.MULTILINE)


def needed(constraints: str, wanted: set[str]) -> str:
    """Return the entries of a constraints file that `fedctl`, `build` or an extra needs."""
    return "".join(entry for needs, entry in ENTRY.findall(constraints) if not wanted.isdisjoint(needs.split(", ")))


def command(*arguments: str) -> list[str]:
    """Return the installer's command line."""
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "--python", sys.executable, "--no-deps", *arguments]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    return [*pip, "--progress-bar", "off", "--no-deps", *arguments]


def install_packages(wanted: set[str], *options: str) -> int:
    """Install the packages that `wanted` names, whose hashes are known; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "requirements.txt")
        listed.write_text(needed((ROOT / "constraints.txt").read_text(), wanted))
        return run(command(*options, "--require-hashes", "--requirement", str(listed)))


def run(arguments: Sequence[str]) -> int:
    """Run the installer; return its exit code. Its output is printed when it fails."""
    found = 0
    last: deque[str] = deque(maxlen=40)
    with subprocess.Popen(  # noqa: S603  # fixed arguments
        arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line)
            found += line.startswith("Collecting ")
            if line.startswith("Installing collected packages"):
                show(f"unpacking {found} packages ...")
            elif line.startswith("Collecting "):
                show(f"downloading: {found} packages so far")
    show("")
    if process.returncode:
        sys.stderr.writelines(last)
    return process.returncode


def install(extras: Sequence[str], wheel: str, target: str) -> int:
    """Install packages and the project; return the exit code."""
    options = ["--target", target] if target else []
    wanted = {"fedctl", *extras}
    if wheel:
        # First ours: pip keeps the scripts of the first installation into a folder.
        return run(command(*options, str(Path(wheel).resolve()))) or install_packages(wanted, *options)
    if not target:
        return install_packages(wanted | {"build"}) or run(command("--no-build-isolation", "--editable", "."))
    # The folder gets nothing that only the build needs.
    code = install_packages({"build"}) or run(command(*options, "--no-build-isolation", "."))
    return code or install_packages(wanted, *options)


def compile_modules() -> int:
    """Write bytecode, which is read even where the environment forbids to write it; return the exit code."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = "import federation.cli.main, federation.cli.run, federation.simulator.__main__"
    for arguments in (["-m", "compileall", "-q", "federation", "plugins"], ["-c", started]):
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=False)  # noqa: S603  # fixed arguments
        if done.returncode:
            return done.returncode
    return 0


def show(text: str) -> None:
    """Show the text in place of the one before, on a terminal only."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\x1b[2K  {text}" if text else "\r\x1b[2K")
        sys.stdout.flush()


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", default=[], help="extras of pyproject.toml")
    parser.add_argument("--wheel", default="", help="a wheel of this version, instead of the checkout")
    parser.add_argument("--target", default="", help="a folder, instead of the environment")
    options = parser.parse_args()
    code = install(options.extras, options.wheel, options.target)
    return code or (0 if options.wheel or options.target else compile_modules())


if __name__ == "__main__":
    sys.exit(main())
