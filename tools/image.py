"""Build the image of the control plane as an OCI archive, without a daemon, a registry or root.

The Dockerfile stays the one description: user, command, volumes and variables are read from its last stage. The image
has two layers: Python from packages of Debian 12, which `apt-get` checks against Debian's signatures, and
`/opt/federation`. The same wheel, packages and time give the same bytes. It needs Debian 12 (`apt-get`, `dpkg-deb`,
`strip`) and its Python, 3.11; `missing_tools` says what is missing. `bill.py` lists what is in the image.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = (
    *("base-files", "netbase", "tzdata", "ca-certificates", "media-types", "gcc-12-base", "libc6", "libgcc-s1"),
    *("libstdc++6", "libssl3", "zlib1g", "libbz2-1.0", "liblzma5", "libexpat1", "libffi8", "libsqlite3-0", "libuuid1"),
    *("libcrypt1", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal", "python3-minimal"),
)
"""Python and what its modules load: no shell, no package manager."""
EXTRAS = ("otel", "postgres")
_PATIENCE = ("Acquire::http::Timeout=20", "Acquire::https::Timeout=20", "Acquire::Retries=1")
"""Without it, `apt-get` waits for minutes where Debian's servers are out of reach."""
_UNNEEDED = (
    "usr/share/doc-base",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/menu",
)
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
}
_OWNED = {"var/lib/federation": (65532, 0o700), "tmp": (0, 0o1777)}
"""Folders whose owner and mode are not those of all others."""
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class ImageError(Exception):
    """The image cannot be built; the message says what to do."""


class UnavailableError(ImageError):
    """A tool is missing here, or Debian's packages are out of reach."""


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """One package of the image, as its control file names it."""

    name: str
    version: str
    architecture: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Image:
    """What was built: the archive, the digest of its manifest, and the packages below Python's."""

    archive: Path
    digest: str
    debian: tuple[DebianPackage, ...]


def missing_tools() -> str:
    """Return what this machine lacks to build the image; empty if nothing."""
    release = Path("/etc/os-release")
    if not release.is_file() or 'VERSION_ID="12"' not in release.read_text() or sys.version_info[:2] != (3, 11):
        return "Debian 12 with Python 3.11"
    return ", ".join(tool for tool in ("apt-get", "dpkg-deb", "strip") if shutil.which(tool) is None)


def last_stage(dockerfile: str) -> dict[str, Any]:
    """Return the `config` of an OCI image that the last stage of a Dockerfile describes."""
    stage = re.split(r"(?m)^FROM .*$", dockerfile.replace("\\\n", " "))[-1]
    config: dict[str, Any] = {"Env": [], "Labels": {}, "Volumes": {}, "ExposedPorts": {}}
    for line in stage.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word in {"ENV", "LABEL"}:
            pairs = dict(pair.split("=", 1) for pair in shlex.split(rest))
            if word == "ENV":
                config["Env"] += [f"{name}={value}" for name, value in pairs.items()]
            else:
                config["Labels"] |= pairs
        elif word == "VOLUME":
            config["Volumes"] |= {path: {} for path in json.loads(rest)}
        elif word == "EXPOSE":
            config["ExposedPorts"][f"{rest}/tcp"] = {}
        elif word == "USER":
            config["User"] = rest
        elif word in {"ENTRYPOINT", "CMD"}:
            config[word.capitalize()] = json.loads(rest)
        elif word == "HEALTHCHECK":
            config["Healthcheck"] = _healthcheck(rest)
        elif word and word != "COPY" and not word.startswith("#"):
            raise ImageError(f"Dockerfile: {word} in the last stage is unknown to tools/image.py")
    return config


def _healthcheck(text: str) -> dict[str, Any]:
    options = dict(re.findall(r"--([a-z-]+)=(\w+)", text))
    second = 1_000_000_000
    return {
        "Test": ["CMD", *json.loads(text[text.index("[") :])],
        "Interval": int(options["interval"].rstrip("s")) * second,
        "Timeout": int(options["timeout"].rstrip("s")) * second,
        "StartPeriod": int(options["start-period"].rstrip("s")) * second,
        "Retries": int(options["retries"]),
    }


def pack_layer(root: Path, at: int) -> bytes:
    """Return the files below `root` as a tar archive with the same bytes for the same files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            packed.inodes = {}  # a hard link is packed as a file
            entry = packed.gettarinfo(path, name)
            owner, mode = _OWNED.get(name, (0, 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644))
            entry.uid = entry.gid = owner
            entry.uname = entry.gname = ""
            entry.mode, entry.mtime = mode, at
            if entry.isreg():
                with path.open("rb") as opened:
                    packed.addfile(entry, opened)
            else:
                packed.addfile(entry)
    return content.getvalue()


def pack_image(archive: Path, name: str, layers: Iterable[bytes], config: Mapping[str, Any], at: int) -> str:
    """Write an OCI archive of uncompressed layers, and return the digest of its manifest."""
    blobs: dict[str, bytes] = {}

    def add(content: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    created = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    unpacked = list(layers)
    described = [add(gzip.compress(layer, 6, mtime=at), _LAYER) for layer in unpacked]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    document = {
        "created": created,
        "architecture": machine,
        "os": "linux",
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in unpacked]},
        "history": [{"created": created, "created_by": f"tools/image.py: {part}"} for part in ("Debian", "federation")],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": add(_json(document), _CONFIG),
        "layers": described,
    }
    listed = add(_json(manifest), _MANIFEST)
    listed["platform"] = {"architecture": machine, "os": "linux"}
    listed["annotations"] = {
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        "io.containerd.image.name": f"docker.io/library/{name}",
    }
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [listed]}
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    files |= {f"blobs/sha256/{digest}": content for digest, content in sorted(blobs.items())}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as packed:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), at, 0o644
            packed.addfile(entry, io.BytesIO(content))
    return str(listed["digest"])


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _run(*command: str, folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603  # fixed arguments
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImageError(f"{' '.join(command[:6])} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def unpack_debian(root: Path, work: Path) -> tuple[DebianPackage, ...]:
    """Download the packages into `work` with lists of their own, and unpack them into `root`."""
    downloads = work / "packages"
    for folder in ("lists/partial", "archives/partial", "packages"):
        (work / folder).mkdir(parents=True)
    settings = (f"Dir::State::lists={work}/lists", f"Dir::Cache={work}", "APT::Sandbox::User=", *_PATIENCE)
    options = [part for setting in settings for part in ("-o", setting)]
    try:
        _run("apt-get", "-q", *options, "update")
        _run("apt-get", "-q", *options, "download", *PACKAGES, folder=downloads)
    except ImageError as error:
        raise UnavailableError(str(error)) from error
    found = []
    for file in sorted(downloads.glob("*.deb")):
        _run("dpkg-deb", "--extract", str(file), str(root))
        control = _run("dpkg-deb", "--field", str(file))
        fields = dict(re.findall(r"(?m)^([A-Za-z-]+): (.*)$", control))
        # Scanners look for the packages of an image without dpkg here.
        status = root / "var/lib/dpkg/status.d" / fields["Package"]
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(control)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        found.append(DebianPackage(fields["Package"], fields["Version"], fields["Architecture"], digest))
    for name in _UNNEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
    authorities = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    (root / "etc/ssl/certs/ca-certificates.crt").write_text("".join(file.read_text() for file in authorities))
    for name, text in _ACCOUNTS.items():
        (root / name).write_text(text)
    return tuple(found)


def install_product(source: Path, wheel: Path, root: Path) -> None:
    """Install the wheel and its packages into `root`/opt/federation, as the Dockerfile's first stage does."""
    target = root / "opt/federation"
    tools = source / "tools"
    _run(sys.executable, str(tools / "install.py"), "--wheel", str(wheel), "--target", str(target), *EXTRAS)
    _run(sys.executable, str(tools / "slim.py"), str(target))
    for command in (target / "bin").iterdir():
        first, _, rest = command.read_bytes().partition(b"\n")
        if first.startswith(b"#!"):
            command.write_bytes(b"#!/usr/bin/python3\n" + rest)
    for file in target.glob("*.dist-info/direct_url.json"):  # the folder of this build
        file.unlink()
        record = file.with_name("RECORD")
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if "/direct_url.json," not in line))
    for name in _OWNED:
        (root / name).mkdir(parents=True, exist_ok=True)


def run_image(root: Path, config: Mapping[str, Any], *arguments: str) -> str:
    """Run `fedctl` in the unpacked image, with its user and variables, and return what it prints; needs root."""
    command = ["chroot", f"--userspec={config['User']}", str(root), "/usr/bin/python3", "/opt/federation/bin/fedctl"]
    variables = {**dict(entry.split("=", 1) for entry in config["Env"]), "PATH": os.environ["PATH"]}
    done = subprocess.run([*command, *arguments], env=variables, capture_output=True, text=True, check=False)  # noqa: S603  # fixed arguments
    if done.returncode:
        raise ImageError(f"the image does not run: {done.stderr.strip()[-2000:]}")
    return done.stdout


def build(source: Path, wheel: Path, version: str, archive: Path, work: Path, at: int) -> Image:
    """Build the image of a wheel from the tree `source`; `work` is an empty folder for what is unpacked."""
    if lacking := missing_tools():
        raise UnavailableError(f"it needs {lacking}")
    config = last_stage((source / "Dockerfile").read_text())
    config["Labels"]["org.opencontainers.image.version"] = version
    debian, product = work / "debian", work / "product"
    for folder in (debian, product):
        folder.mkdir(parents=True)
    packages = unpack_debian(debian, work / "apt")
    install_product(source, wheel, product)
    layers = (pack_layer(debian, at), pack_layer(product, at))
    digest = pack_image(archive, f"federation:{version}", layers, config, at)
    if os.geteuid() == 0:
        check_image(layers, config, version, work / "checked")
    return Image(archive, digest, packages)


def check_image(layers: Iterable[bytes], config: Mapping[str, Any], version: str, root: Path) -> None:
    """Unpack the layers and run `fedctl --version` in them, with nothing of this machine's; ImageError if it fails."""
    root.mkdir()
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as packed:
            packed.extractall(root)  # noqa: S202  # packed above; Python 3.11.2 has no filters
    printed = run_image(root, config, "--version")
    if version.replace("-rc.", "rc") not in printed:
        raise ImageError(f"the image runs another version: {printed.strip()}")
