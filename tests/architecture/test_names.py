"""A wire name is defined by its only user, or in api/names.py if several packages use it."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest
from tests.support.sources import Source, product, suite

from federation.api import names as shared

pytestmark = pytest.mark.xdist_group("syntax trees")

SHARED = "federation.api.names"

FAMILIES = {
    "DEPLOYMENT_AVAILABLE",  # one of the three conditions of Deployments
    "DEPLOYMENT_PROGRESSING",
    "FAILED_OVERRIDES",  # the only names of their packages: too few for a module
    "LOGIN_LINK_LABEL",
    "SHIPPED_DEFINITION",
    "STRAYS",
    "HPA_DISTRIBUTED",  # the other value of HPA_MODE
    "KATALYST_PREFIX",  # plugins read it from the framework's types
    "LATEST_REPLICASET_PREFIX",  # beside LATEST_REPLICASET_DIGESTS
    "ON_DEMAND",  # the other value of CAPACITY_TYPE
    "ON_DEMAND_FLOOR",  # plugins are one file each
    "SCALE_TARGET_REF_PATH",  # `api` itself uses it
    "SCALING_LIMITED",  # one of the three conditions of autoscalers
}
"""Constants of api/names.py with one user, and the reason for each."""


def _package(source: Source) -> str:
    """Return the package that can own names: a controller, a feature or a part of `planning` is one."""
    parts = source.name.removesuffix(".py").split("/")[1:-1]
    return "/".join(parts[: 2 if parts[:1] in (["controllers"], ["features"], ["planning"]) else 1])


def _constants() -> Iterator[tuple[str, bool]]:
    """Yield each constant of api/names.py, and whether a later one is made from it."""
    (names,) = (source for source in product() if source.name == "federation/api/names.py")
    read = [node.id for node in ast.walk(names.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("_"):
            yield node.id, node.id in read


def _used(source: Source) -> Iterator[str]:
    """Yield the constants of api/names.py that a module uses."""
    if not source.has(r"federation\.api(\.names)? import"):
        return
    aliases = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "federation.api":
            aliases |= {alias.asname or alias.name for alias in node.names if alias.name == "names"}
        elif isinstance(node, ast.ImportFrom) and node.module == SHARED:
            yield from (alias.name for alias in node.names)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node.attr


def _users() -> Mapping[str, set[str]]:
    """Return the packages that use each constant of api/names.py."""
    users: dict[str, set[str]] = defaultdict(set)
    for source in product():
        for name in _used(source):
            users[name].add(_package(source))
    return users


def test_a_name_with_one_user_is_defined_there() -> None:
    users = _users()
    alone = {name for name, is_part in _constants() if not is_part and len(users[name]) < 2}
    assert alone == FAMILIES, {name: users[name] for name in alone ^ FAMILIES}


def test_every_name_that_a_test_uses_exists() -> None:
    """Types are checked in the product and in tests/support only."""
    missing = [f"{source.name}: {name}" for source in suite() for name in _used(source) if not hasattr(shared, name)]
    assert not missing
