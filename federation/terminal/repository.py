"""Read the files that differ between two commits of a Git repository, or between two directories.

`git` runs as a process that gets no text of the repository as an option, and runs no filter or driver that the
repository names. Symbolic links and submodules are left out.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from federation.apimachinery.errors import ConfigurationError, UnknownName
from federation.apimachinery.nearestfile import nearest_file
from federation.apimachinery.nearestname import did_you_mean
from federation.plans.repositorychanges import Files

_SUFFIXES = (".yaml", ".yml", ".json")
_FILES_MAX = 2_000
"""Files that differ."""
_BYTES_MAX = 64 << 20
"""Bytes of all files that differ, on both sides."""
_REGULAR = ("100644", "100755")
_GIT_S = 60.0
_EVERYTHING = ":/"
"""The whole repository, as a path of Git."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The files that differ, on both sides; `commit` is that of the side after, "" for directories."""

    before: Files
    after: Files
    commit: str = ""


async def read_commits(base: str, head: str, paths: Sequence[str]) -> Difference:
    """Return the files below the paths that differ between a commit and where it branched off another one.

    ConfigurationError if a commit is not known here, or if a path has no manifests in either commit.
    """
    commit = await _resolve(head, "--head")
    start = (await _git("merge-base", await _resolve(base, "--base"), commit, missing=_MISSING)).decode().strip()
    for path in paths or (_EVERYTHING,):
        await _check_path(path, start, commit)
    listed = await _git(
        "diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index", "--abbrev=64",
        start, commit, "--", *paths,
    )  # fmt: skip
    entries = [entry for entry in _parse_raw(listed.decode(errors="surrogateescape")) if _is_manifest_file(entry.path)]
    if len(entries) > _FILES_MAX:
        raise ConfigurationError(f"{len(entries)} files differ; review at most {_FILES_MAX} at once")
    blobs = await _read_blobs({blob for entry in entries for blob in (entry.before, entry.after) if blob})
    return Difference(
        {entry.path: _text(entry.path, blobs[entry.before]) for entry in entries if entry.before},
        {entry.path: _text(entry.path, blobs[entry.after]) for entry in entries if entry.after},
        commit,
    )


async def _check_path(path: str, *commits: str) -> None:
    """Raise ConfigurationError unless a commit has manifests there: a review of nothing must not pass."""
    empty = (await _git("hash-object", "-t", "tree", "--stdin", stdin=b"")).decode().strip()
    files: set[str] = set()
    for commit in commits:
        listed = await _git("diff", "--name-only", "-z", "--no-ext-diff", empty, commit, "--", path)
        files.update(filter(None, listed.decode(errors="surrogateescape").split("\0")))
    if any(map(_is_manifest_file, files)):
        return
    if files or path == _EVERYTHING:
        where = "the repository" if path == _EVERYTHING else path
        raise ConfigurationError(f"{where} has no manifests ({', '.join(_SUFFIXES)}); name a path with some")
    folders = (await _git("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", commits[-1])).decode().split("\0")
    hint = did_you_mean(path.rstrip("/"), folders) or "; name a path that one of them has"
    raise UnknownName(f"{path}: neither commit has such a path{hint}")


_MISSING = "the two commits have no common ancestor here; fetch the whole history, for example with fetch-depth: 0"


def read_directories(before: Path, after: Path) -> Difference:
    """Return the files that differ between two directories, with those below them."""
    old, new = _read_tree(before), _read_tree(after)
    if not old and not new:
        raise ConfigurationError(
            f"{before} and {after} have no manifests ({', '.join(_SUFFIXES)}); name directories with some"
        )
    differing = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    return Difference(
        {path: old[path] for path in differing if path in old}, {path: new[path] for path in differing if path in new}
    )


def _read_tree(directory: Path) -> dict[str, str]:
    if not directory.is_dir():
        raise UnknownName(f"{directory}: no such directory{nearest_file(directory)}")
    found: dict[str, str] = {}
    size = 0
    for path in sorted(directory.rglob("*")):
        if not _is_manifest_file(path.name) or path.is_symlink() or not path.is_file():
            continue
        size += path.stat().st_size
        if size > _BYTES_MAX or len(found) >= _FILES_MAX * 10:
            raise ConfigurationError(f"{directory}: more than {_BYTES_MAX >> 20} MiB of manifests")
        found[str(path.relative_to(directory))] = _text(str(path), path.read_bytes())
    return found


def _is_manifest_file(path: str) -> bool:
    return path.endswith(_SUFFIXES)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: it is not UTF-8") from error


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    before: str
    after: str


def _parse_raw(text: str) -> Iterator[_Entry]:
    """Yield the regular files of `git diff --raw -z`, with their blobs; "" where there is none."""
    fields = text.split("\0")
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = header.removeprefix(":").split(" ", 4)
        before, after = (old if old_mode in _REGULAR else ""), (new if new_mode in _REGULAR else "")
        if before or after:
            yield _Entry(path, before, after)


async def _resolve(name: str, option: str) -> str:
    """Return the id of a commit."""
    if not name or name.startswith("-"):
        raise ConfigurationError(f"{option} {name!r}: name a commit, for example origin/main")
    names = (await _git("for-each-ref", "--format=%(refname:short)")).decode(errors="replace").split()
    hint = did_you_mean(name, ["HEAD", *names]) or "; fetch it, for example with: git fetch origin"
    missing = f"{option} {name}: no such commit here{hint}"
    found = await _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", missing=missing)
    return found.decode().strip()


async def _read_blobs(blobs: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of blobs by id."""
    wanted = sorted(blobs)
    if not wanted:
        return {}
    sizes = await _git("cat-file", "--batch-check=%(objectsize)", stdin="\n".join(wanted).encode() + b"\n")
    total = sum(int(line) for line in sizes.split() if line.isdigit())
    if total > _BYTES_MAX:
        raise ConfigurationError(f"the files that differ have {total >> 20} MiB; review at most {_BYTES_MAX >> 20} MiB")
    content = await _git("cat-file", "--batch", stdin="\n".join(wanted).encode() + b"\n")
    found, at = {}, 0
    for blob in wanted:
        end = content.index(b"\n", at)
        _, _, size = content[at:end].decode().split(" ")
        found[blob] = content[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


async def _git(*arguments: str, stdin: bytes | None = None, missing: str = "") -> bytes:
    """Return what git prints; ConfigurationError with `missing`, or with its message, if it fails."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = await asyncio.create_subprocess_exec(
            "git", "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=environment,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise ConfigurationError("git is not installed here; give two directories with --before and --after") from error
    try:
        output, problem = await asyncio.wait_for(process.communicate(stdin), _GIT_S)
    except TimeoutError as error:
        process.kill()
        raise ConfigurationError(f"git {arguments[0]} takes more than {_GIT_S:g} s") from error
    if process.returncode:
        said = " ".join(problem.decode(errors="replace").split())[:300]
        raise ConfigurationError(missing if missing and not said.startswith("fatal: not a git") else f"git: {said}")
    return output
