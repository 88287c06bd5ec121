"""`tools/install.py` chooses packages of `constraints.txt`; each extra has what pyproject.toml says."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.vectors import ROOT
from tools.install import needed

CONSTRAINTS = """# Made by something.
# fedctl
a==1 \\
    --hash=sha256:00 \\
    --hash=sha256:01
# test, build
b==2 ; python_full_version < '3.12' \\
    --hash=sha256:02
"""


@pytest.mark.parametrize(
    ("wanted", "expected"), [({"fedctl"}, ["a"]), ({"build"}, ["b"]), ({"fedctl", "test"}, ["a", "b"]), ({"tes"}, [])]
)
def test_entries_are_chosen_by_what_needs_them(wanted: set[str], expected: list[str]) -> None:
    chosen = needed(CONSTRAINTS, wanted)
    assert re.findall("^[ab]", chosen, re.MULTILINE) == expected
    assert ("--hash=sha256:01\n" in chosen) == ("a" in expected)


@pytest.mark.parametrize("extra", ["", "otel", "postgres", "test"])
def test_each_installation_has_its_direct_dependencies(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen = needed((ROOT / "constraints.txt").read_text(), {"fedctl", *([extra] if extra else [])})
    names = {canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", chosen, re.MULTILINE)}
    wanted = [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else [])]
    assert {canonicalize_name(Requirement(each).name) for each in wanted} <= names
