"""Make an installed tree smaller, for the image: `python tools/slim.py FOLDER`, with the Python that will run it.

Symbols are stripped from shared libraries, and tests and type stubs of libraries removed. The Kubernetes client, a
third of the tree and rarely imported, is kept as bytecode without docstrings. All that a control plane imports at its
start is compiled: the image's file system is read-only, so that nothing could be kept at run time.
"""

import compileall
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

_CLIENT = "kubernetes"
_STARTED = (
    "federation.cli.entry, federation.cli.start, federation.cli.run, federation.cli.ready, federation.client.http, "
    "federation.apimachinery.logs, httptools, sqlalchemy.dialects.sqlite, uvicorn.lifespan.off, uvloop, "
    "uvicorn.protocols.websockets.wsproto_impl"
)
_PLUGINS = "federation_plugins"
"""The start imports them through their entry points."""
_INSTALLED = "/opt/federation"
"""Where the tree will be: bytecode names its source, and the folder of a build is not that."""
_UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def remove_unneeded(root: Path) -> None:
    """Remove type stubs and the tests of libraries."""
    for file in (*root.rglob("*.pyi"), *(root / _CLIENT).rglob("*_test.py")):
        file.unlink()
    for folder in list(root.glob("*/**/tests")):
        shutil.rmtree(folder)


def strip_libraries(root: Path) -> None:
    """Remove symbols that only debuggers need."""
    libraries = [str(path) for path in root.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    if libraries:
        subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)  # noqa: S603, S607  # files of this tree


def keep_bytecode_only(root: Path, name: str) -> None:
    """Replace the sources of a package by bytecode without docstrings."""
    package = root / name
    moved = {"stripdir": str(root), "prependdir": _INSTALLED}
    if not compileall.compile_dir(package, quiet=1, legacy=True, optimize=2, invalidation_mode=_UNCHECKED, **moved):
        raise SystemExit(f"{package} cannot be compiled")
    for source in package.rglob("*.py"):
        source.unlink()


def compile_started(root: Path, modules: str = _STARTED) -> None:
    """Compile the modules that a start imports."""
    moved = {"stripdir": str(root), "prependdir": _INSTALLED}
    compileall.compile_dir(root / _PLUGINS, quiet=1, invalidation_mode=_UNCHECKED, **moved)
    code = f"import sys, {modules}; print(*[getattr(m, '__file__', None) for m in sys.modules.values()], sep='\\n')"
    environment = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    # In the tree: Python would find the sources in the current folder first.
    done = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    for line in done.stdout.splitlines():
        if line.endswith(".py") and Path(line).is_relative_to(root):
            source = f"{_INSTALLED}/{Path(line).relative_to(root).as_posix()}"
            py_compile.compile(line, dfile=source, doraise=True, invalidation_mode=_UNCHECKED)


def main(root: Path) -> None:
    """Make the tree smaller and print its size."""
    remove_unneeded(root)
    strip_libraries(root)
    keep_bytecode_only(root, _CLIENT)
    compile_started(root)
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())
    sys.stdout.write(f"{root}: {size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
