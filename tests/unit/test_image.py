"""`tools/image.py` and `tools/bill.py`: the archive is what the Dockerfile says, with the same bytes for the same files."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.vectors import ROOT
from tools.bill import bill_of_materials, debian_components, provenance, python_components
from tools.image import EXTRAS, DebianPackage, ImageError, last_stage, pack_image, pack_layer

AT = 1_700_000_000
DOCKERFILE = (ROOT / "Dockerfile").read_text()
DIGEST = "sha256:00"
LIBC = DebianPackage("libc6", "2.36-9+deb12u14", "amd64", "ab")


def test_the_configuration_is_that_of_the_dockerfile() -> None:
    config = last_stage(DOCKERFILE)
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["fedctl"]
    assert config["Cmd"][0] == "serve"
    assert "PYTHONPATH=/opt/federation" in config["Env"]
    assert set(config["Volumes"]) == {"/tmp", "/var/lib/federation"}
    assert config["ExposedPorts"] == {"7443/tcp": {}}
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "fedctl", "ready"]
    assert config["Healthcheck"]["StartPeriod"] == 60_000_000_000
    assert f"--target /opt/federation {' '.join(EXTRAS)} \\" in DOCKERFILE, "both have the same extras"


def test_an_unknown_instruction_is_not_ignored() -> None:
    with pytest.raises(ImageError, match="STOPSIGNAL"):
        last_stage(f"{DOCKERFILE}\nSTOPSIGNAL SIGINT\n")


def a_tree(folder: Path) -> Path:
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/python3.11").write_text("python")
    (folder / "usr/bin/python3.11").chmod(0o755)
    (folder / "usr/bin/python3").symlink_to("python3.11")
    os.link(folder / "usr/bin/python3.11", folder / "usr/bin/again")
    (folder / "var/lib/federation").mkdir(parents=True)
    (folder / "tmp").mkdir()
    return folder


def test_layers_have_the_same_bytes_and_nothing_of_who_built_them(tmp_path: Path) -> None:
    first, second = (pack_layer(a_tree(tmp_path / name), AT) for name in ("a", "b"))
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as packed:
        entries = {entry.name: entry for entry in packed}
    assert {(entry.mtime, entry.uname) for entry in entries.values()} == {(AT, "")}
    assert entries["usr/bin/python3"].linkname == "python3.11"
    assert entries["usr/bin/python3.11"].mode == 0o755
    assert entries["usr/bin/again"].isreg(), "a link to a file of the layer is a file"
    assert (entries["var/lib/federation"].uid, entries["var/lib/federation"].mode) == (65532, 0o700)
    assert (entries["tmp"].uid, entries["tmp"].mode) == (0, 0o1777)


def test_the_archive_names_every_blob_by_its_digest(tmp_path: Path) -> None:
    layers = (pack_layer(a_tree(tmp_path / "a"), AT), pack_layer(tmp_path / "a/usr", AT))
    config = last_stage(DOCKERFILE)
    archives = [tmp_path / "1.tar", tmp_path / "2.tar"]
    digest, again = (pack_image(archive, "federation:1.0.0", layers, config, AT) for archive in archives)
    assert digest == again
    assert archives[0].read_bytes() == archives[1].read_bytes()

    with tarfile.open(archives[0]) as packed:
        files = {entry.name: packed.extractfile(entry).read() for entry in packed}  # type: ignore[union-attr]  # files only
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def blob(reference: dict[str, Any]) -> bytes:
        content = files[f"blobs/{reference['digest'].replace(':', '/')}"]
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == reference["digest"]
        assert len(content) == reference["size"]
        return content

    (listed,) = json.loads(files["index.json"])["manifests"]
    assert listed["digest"] == digest
    assert listed["annotations"]["org.opencontainers.image.ref.name"] == "1.0.0"
    manifest = json.loads(blob(listed))
    document = json.loads(blob(manifest["config"]))
    assert document["config"] == config
    assert len([blob(layer) for layer in manifest["layers"]]) == len(document["rootfs"]["diff_ids"]) == 2
    assert document["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]


def an_installed(folder: Path, name: str, *fields: str) -> None:
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join([f"Name: {name}", "Version: 1+local", *fields, "", "Name: of the text"]))


def test_the_bill_lists_packages_of_debian_and_python_with_their_licences(tmp_path: Path) -> None:
    an_installed(tmp_path, "Some_Name", "License-Expression: MIT OR Apache-2.0")
    an_installed(tmp_path, "other", "License: BSD")
    an_installed(tmp_path, "silent")
    python, debian = python_components(tmp_path), debian_components([LIBC])
    assert [part["purl"] for part in (*python, *debian)] == [
        "pkg:pypi/some-name@1%2Blocal",
        "pkg:pypi/other@1%2Blocal",
        "pkg:pypi/silent@1%2Blocal",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12",
    ]
    assert [part.get("licenses") for part in python] == [
        [{"expression": "MIT OR Apache-2.0"}],
        [{"license": {"name": "BSD"}}],
        None,
    ]
    bill = bill_of_materials("1.0.0", DIGEST, [*debian, *python], AT)
    assert bill == bill_of_materials("1.0.0", DIGEST, [*debian, *python], AT)
    assert bill["dependencies"][0]["ref"] == bill["metadata"]["component"]["bom-ref"]
    assert len(bill["dependencies"][0]["dependsOn"]) == len(bill["components"]) == 4


def test_the_provenance_names_every_file_and_what_it_was_made_of(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_text("wheel")
    statement = provenance("1.0.0", "c0ffee", tmp_path, [{"uri": "pkg:deb/debian/libc6", "sha256": "ab"}])
    assert statement["subject"] == [{"name": "a.whl", "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}]
    commit, libc = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert commit["digest"] == {"gitCommit": "c0ffee"}
    assert libc == {"uri": "pkg:deb/debian/libc6", "digest": {"sha256": "ab"}}
