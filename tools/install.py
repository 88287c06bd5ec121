"""Install this checkout into the virtual environment of the interpreter that runs this, and show how far it is.

    .venv/bin/python tools/install.py          what `fedctl` needs
    .venv/bin/python tools/install.py test     and what tests need

It uses uv where it is installed, else pip. Our modules are compiled at once, and of libraries those that a start
imports: most modules of the Kubernetes client never are, and compiling them all takes longer than everything else.
Without this, each of several processes that start at the same time would compile them.
"""

import os
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def command(extra: str) -> list[str]:
    """Return the installer's command line."""
    project = f".[{extra}]" if extra else "."
    wanted = ["--constraint", "constraints.txt", "--editable", project]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "--python", sys.executable, *wanted]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    return [*pip, "--progress-bar", "off", *wanted]


def install(extra: str) -> int:
    """Run the installer; return its exit code. Its output is printed when it fails."""
    found = 0
    last: deque[str] = deque(maxlen=40)
    with subprocess.Popen(  # noqa: S603  # fixed arguments
        command(extra), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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


if __name__ == "__main__":
    sys.exit(install(sys.argv[1] if len(sys.argv) > 1 else "") or compile_modules())
