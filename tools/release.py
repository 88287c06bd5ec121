"""Build a release: `make release VERSION=1.0.0`.

It builds from the commit that is checked out, not from the work tree: wheel, sdist, one archive per chart, notes from
the change log, and SHA256SUMS, all in `dist/VERSION`. The version is written into a copy of the commit, so nothing
changes here, unless `--tag` asks for the commit and the tag of the release. Nothing is published. The same commit gives
the same charts and notes, and the same wheel and sdist by the same hatchling.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
_VERSION = re.compile(r"(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})(?:-rc\.([1-9]\d{0,2}))?")
_FINAL = 1_000
"""A final version sorts behind its release candidates."""
CHARTS = ("federation", "federation-agent")
_UNRELEASED = "## [Unreleased]"
_VERSIONED: Mapping[str, str] = {
    "pyproject.toml": r'(?m)^(version = ")[^"]+(")$',
    "federation/__init__.py": r'(?m)^(__version__ = ")[^"]+(")$',
    **{f"charts/{chart}/Chart.yaml": r"(?m)^((?:appVersion|version): )\S+()$" for chart in CHARTS},
    "docs/install.md": r"(federation:)\d+\.\d+\.\d+(?:-rc\.\d+)?(\b)",
}
"""Files that name the version, and where."""


class ReleaseError(Exception):
    """The release cannot be built; the message says what to do."""


def version_key(version: str) -> tuple[int, int, int, int]:
    """Return a sort key of a version X.Y.Z or X.Y.Z-rc.N; ReleaseError for another text."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ReleaseError(f"VERSION={version}: write X.Y.Z or X.Y.Z-rc.N, for example 1.0.0")
    major, minor, patch, candidate = found.groups()
    return int(major), int(minor), int(patch), int(candidate or _FINAL)


def to_python(version: str) -> str:
    """Return the version as Python packages spell it: 1.0.0rc1."""
    return version.replace("-rc.", "rc")


def with_version(name: str, text: str, version: str) -> str:
    """Return a file's text with the version; ReleaseError when the file does not name one."""
    spelled = to_python(version) if name.endswith((".toml", ".py")) else version
    changed, count = re.subn(_VERSIONED[name], rf"\g<1>{spelled}\g<2>", text)
    if not count:
        raise ReleaseError(f"{name}: names no version; mend _VERSIONED in tools/release.py")
    return changed


def split_changelog(text: str, version: str, day: str) -> tuple[str, str]:
    """Return the change log with the unreleased changes under the version, and these changes."""
    _, heading, rest = text.partition(_UNRELEASED)
    notes = re.split(r"(?m)^## \[", rest, maxsplit=1)[0].strip()
    if not heading or not notes:
        raise ReleaseError(f'CHANGELOG.md: there is nothing below "{_UNRELEASED}"')
    if f"## [{version}]" in text:
        raise ReleaseError(f"CHANGELOG.md: has a section {version} already")
    return text.replace(_UNRELEASED, f"{_UNRELEASED}\n\n## [{version}] - {day}", 1), notes


def pack_chart(folder: Path, archive: Path, at: int) -> None:
    """Write a chart as Helm packs it, with the same bytes for the same files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}")
            entry.size, entry.mtime, entry.mode = file.stat().st_size, at, 0o644
            with file.open("rb") as opened:
                packed.addfile(entry, opened)
    archive.write_bytes(gzip.compress(content.getvalue(), mtime=at))


def checksums(folder: Path) -> str:
    """Return the lines that `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def check_wheel(wheel: Path, version: str) -> None:
    """Raise ReleaseError unless the wheel has the version, the commands, and the files that are no code."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = packed.read(info).decode()
        commands = packed.read(info.replace("METADATA", "entry_points.txt")).decode()
    for needed in ("federation/web/ui/templates/base.html", "federation/web/ui/static/ui.css"):
        if needed not in names:
            raise ReleaseError(f"{wheel.name}: has no {needed}")
    if f"\nVersion: {to_python(version)}\n" not in metadata or "fedctl = " not in commands:
        raise ReleaseError(f"{wheel.name}: wrong version, or no fedctl")


def _run(*command: str, folder: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603  # fixed arguments
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout.strip()


def _write_version(folder: Path, version: str, day: str) -> str:
    """Write the version into the files of a folder, and return the notes."""
    for name in _VERSIONED:
        file = folder / name
        file.write_text(with_version(name, file.read_text(), version))
    log, notes = split_changelog((folder / "CHANGELOG.md").read_text(), version, day)
    (folder / "CHANGELOG.md").write_text(log)
    return notes


def build(version: str, target: Path) -> None:
    """Build everything into the folder `target`, which must not exist."""
    at = int(_run("git", "log", "-1", "--format=%ct"))
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as temporary:
        source, made = Path(temporary) / f"federation-{version}", Path(temporary) / "made"
        source.mkdir()
        made.mkdir()
        archive = Path(temporary) / "source.tar"
        _run("git", "archive", f"--output={archive}", "HEAD")
        with tarfile.open(archive) as packed:
            packed.extractall(source)  # noqa: S202  # `git archive` made it; Python 3.11.2 has no filters
        notes = _write_version(source, version, day)
        _run(sys.executable, "-m", "hatchling", "build", "-d", str(made), folder=source, SOURCE_DATE_EPOCH=str(at))
        (wheel,) = made.glob("*.whl")
        check_wheel(wheel, version)
        for chart in CHARTS:
            pack_chart(source / "charts" / chart, made / f"{chart}-chart-{version}.tgz", at)
        (made / "NOTES.md").write_text(f"# federation {version}\n\n{notes}\n")
        (made / "SHA256SUMS").write_text(checksums(made))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(str(made), target)


def check(version: str, target: Path) -> None:
    """Raise ReleaseError unless the version is a later one, and the commit is what would be tested and released."""
    found = re.search(_VERSIONED["charts/federation/Chart.yaml"], (ROOT / "charts/federation/Chart.yaml").read_text())
    present = found[0].split()[-1] if found else "0.0.0"
    if version_key(version) <= version_key(present):
        raise ReleaseError(f"VERSION={version}: the present version is {present}; give a later one")
    check_clean()
    if _run("git", "tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} exists")
    if target.exists():
        raise ReleaseError(f"{target} exists; remove it first")


def check_clean(folder: Path = ROOT) -> None:
    """Raise ReleaseError when files differ from the commit that is checked out."""
    if _run("git", "status", "--porcelain", "--untracked-files=no", folder=folder):
        raise ReleaseError("the work tree has changes; commit them first")


def check_unchanged(commit: str, folder: Path = ROOT) -> None:
    """Raise ReleaseError unless the work tree is still the commit that was built."""
    if _run("git", "rev-parse", "HEAD", folder=folder) != commit:
        raise ReleaseError("another commit was checked out during the build; run it again")
    check_clean(folder)


def tag(version: str, commit: str) -> None:
    """Commit the version on top of `commit`, which was built, and tag it, with a signature if git has a key.

    ReleaseError when something was edited or committed meanwhile.
    """
    check_unchanged(commit)
    day = datetime.fromtimestamp(int(_run("git", "log", "-1", "--format=%ct")), UTC).date().isoformat()
    _write_version(ROOT, version, day)
    _run("git", "commit", "--only", f"--message=release: {version}", "--", *_VERSIONED, "CHANGELOG.md")
    has_key = "user.signingkey=" in _run("git", "config", "--list")
    _run("git", "tag", "--sign" if has_key else "--annotate", f"--message=federation {version}", f"v{version}")


def main() -> int:
    """Build the release and print what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--tag", action="store_true", help="commit the version and tag it afterwards")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR")
    arguments = parser.parse_args()
    target = arguments.output / arguments.version
    try:
        check(arguments.version, target)
        commit = _run("git", "rev-parse", "HEAD")
        build(arguments.version, target)
        if arguments.tag:
            tag(arguments.version, commit)
    except ReleaseError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for path in sorted(target.iterdir()):
        sys.stdout.write(f"{path.stat().st_size:>10,}  {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
