"""Build a release: `make release VERSION=1.0.0`.

It builds from the commit that is checked out, not from the work tree: wheel, sdist, one archive per chart, the image
(`image.py`) with its bill of materials, the provenance of all of them (`bill.py`), notes from the change log, and
SHA256SUMS, all in `dist/VERSION`. The version is written into a copy of the commit, so nothing changes here, unless
`--tag` asks for the commit and the tag of the release, which are signed, as SHA256SUMS is then. Nothing is published.
The same commit gives the same charts and notes, and the same wheel, sdist and image by the same tools and packages of
Debian. A machine that cannot build the image leaves it out and says so.
"""

import argparse
import gzip
import hashlib
import io
import json
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
from typing import Any

from tools import bill, image

ROOT = Path(__file__).parent.parent
_VERSION = re.compile(r"(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})(?:-rc\.([1-9]\d{0,2}))?")
_FINAL = 1_000
"""A final version sorts behind its release candidates."""
CHARTS = ("federation", "federation-agent")
_UNRELEASED = "## [Unreleased]"
_SHORT = ("### In short", "### Upgrade notes")
_SCREEN = 45
"""Lines of a version in the change log; all changes are in a page of their own."""
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


def split_changelog(text: str, version: str, day: str) -> tuple[str, str, str]:
    """Return the change log of the version, its notes, and a page with all of its changes.

    The notes are what stands in the change log below the version: one screen, with what to do before an upgrade.
    """
    before, heading, rest = text.partition(_UNRELEASED)
    section = re.split(r"(?m)^## \[", rest, maxsplit=1)[0]
    if f"## [{version}]" in text:
        raise ReleaseError(f"CHANGELOG.md: has a section {version} already")
    parts = {part.partition("\n")[0].strip(): part for part in re.split(r"(?m)^(?=### )", section)}
    if not heading or any(not parts.get(part, "").partition("\n")[2].strip() for part in _SHORT):
        raise ReleaseError(f'CHANGELOG.md: there is nothing below "{_UNRELEASED}" in {" and in ".join(_SHORT)}')
    notes = "\n\n".join(parts[part].strip() for part in _SHORT)
    if notes.count("\n") >= _SCREEN:
        raise ReleaseError(f"CHANGELOG.md: {' and '.join(_SHORT)} take more than one screen, {_SCREEN} lines; cut them")
    changes = "".join(part for name, part in parts.items() if name not in _SHORT).strip()
    empty = "\n\n".join(_SHORT)
    listed = f"All changes: [docs/changes/{version}.md](docs/changes/{version}.md)\n\n" if changes else ""
    after = f"{_UNRELEASED}\n\n{empty}\n\n## [{version}] - {day}\n\n{notes}\n\n{listed}"
    return before + after + rest[len(section) :], notes, f"# Changes of {version}\n\n{changes}\n" if changes else ""


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
    log, notes, changes = split_changelog((folder / "CHANGELOG.md").read_text(), version, day)
    (folder / "CHANGELOG.md").write_text(log)
    if changes:
        page = folder / "docs" / "changes" / f"{version}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(changes)
    return notes


def build(version: str, target: Path, *, needs_image: bool = False) -> None:
    """Build everything into the folder `target`, which must not exist; the image where that is possible, or must be."""
    at = int(_run("git", "log", "-1", "--format=%ct"))
    commit = _run("git", "rev-parse", "HEAD")
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
        try:
            materials = build_image(source, wheel, version, made, Path(temporary) / "image", at)
        except image.UnavailableError as error:
            if needs_image:
                raise
            sys.stderr.write(f"The image is left out: {error}\n")
            materials = []
        statement = bill.provenance(version, commit, made, materials)
        _write_json(made / f"federation-{version}.provenance.json", statement)
        (made / "SHA256SUMS").write_text(checksums(made))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(str(made), target)


def build_image(source: Path, wheel: Path, version: str, made: Path, work: Path, at: int) -> list[dict[str, str]]:
    """Build the image and its bill of materials into `made`, and return the packages that it was made of."""
    archive = made / f"federation-image-{version}.oci.tar"
    built = image.build(source, wheel, version, archive, work, at)
    debian = bill.debian_components(built.debian)
    python = bill.python_components(work / "product/opt/federation")
    _write_json(
        made / f"federation-image-{version}.cdx.json",
        bill.bill_of_materials(version, built.digest, [*debian, *python], at),
    )
    return [{"uri": part["purl"], "sha256": part["hashes"][0]["content"]} for part in debian]


def _write_json(file: Path, document: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(document, indent=1) + "\n")


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


def signing_key(folder: Path = ROOT) -> tuple[str, str]:
    """Return the format, `ssh` or `openpgp`, and the key with which git signs here; ReleaseError if there is none."""
    settings = dict(line.partition("=")[::2] for line in _run("git", "config", "--list", folder=folder).splitlines())
    form, key = settings.get("gpg.format", "openpgp"), settings.get("user.signingkey", "")
    if not key or form not in {"ssh", "openpgp"} or (form == "ssh" and not Path(key).expanduser().is_file()):
        raise ReleaseError(
            "a release is signed, and git has no key for it; run `git config user.signingkey KEY`, and for the file of "
            "an SSH key `git config gpg.format ssh`"
        )
    return form, key


def sign(file: Path, form: str, key: str) -> Path:
    """Write the signature of a file beside it, and return its path."""
    if form == "ssh":
        _run("ssh-keygen", "-Y", "sign", "-n", "file", "-f", str(Path(key).expanduser()), str(file))
        return file.with_name(f"{file.name}.sig")
    signature = file.with_name(f"{file.name}.asc")
    _run("gpg", "--batch", "--local-user", key, "--armor", "--output", str(signature), "--detach-sign", str(file))
    return signature


def tag(version: str, commit: str) -> None:
    """Commit the version on top of `commit`, which was built, and tag it with a signature.

    ReleaseError when something was edited or committed meanwhile.
    """
    check_unchanged(commit)
    day = datetime.fromtimestamp(int(_run("git", "log", "-1", "--format=%ct")), UTC).date().isoformat()
    _write_version(ROOT, version, day)
    page = f"docs/changes/{version}.md"
    written = [*_VERSIONED, "CHANGELOG.md", *([page] if (ROOT / page).exists() else [])]
    _run("git", "add", "--", *written)
    _run("git", "commit", "--only", f"--message=release: {version}", "--", *written)
    _run("git", "tag", "--sign", f"--message=federation {version}", f"v{version}")


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
        key = signing_key() if arguments.tag else None
        commit = _run("git", "rev-parse", "HEAD")
        build(arguments.version, target, needs_image=arguments.tag)
        if key is not None:
            tag(arguments.version, commit)
            sign(target / "SHA256SUMS", *key)
    except (ReleaseError, image.ImageError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for path in sorted(target.iterdir()):
        sys.stdout.write(f"{path.stat().st_size:>10,}  {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
