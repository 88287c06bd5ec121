"""Every deletion in a member passes one place, which asks for evidence (docs/decisions/0207)."""

import ast

import pytest
from tests.support.sources import product

pytestmark = pytest.mark.xdist_group("syntax trees")

OF_MEMBERS = {
    "federation/delivery/members/operations.py": {
        "remove": "every deletion of a member object, with evidence",
        "_take_back": "a StatefulSet that a user orphaned and created again with other fields; its pods stay",
    },
    "federation/controllers/cluster/memberaccount.py": {"_delete": "the account and rights that the join created"},
    "federation/controllers/cluster/memberjoin.py": {"release": "the namespace and role that the join created"},
    "federation/features/uniteddeployment/memberpods.py": {"delete": "a pod that its user named"},
    "federation/features/volumemoves/site.py": {
        "remove": "what a move made there, by its mark, and old volumes whose deletion was approved, by uid"
    },
}
"""Functions that delete in a member, and what."""
_MEMBER = {"member", "client"}
_ON_HOST = {
    "federation/controllers/federate/historywriter.py",
    "federation/features/workloadspread/incluster/configurations.py",
    "federation/hosting/sharedcertificate.py",
    "federation/web/ui/storedlinks.py",
}
"""Modules whose `client` is that of the host, or of the cluster that they run in."""
_OUTSIDE = ("federation/apiserver", "federation/simulator", "federation/twin", "federation/cli")


def test_member_objects_are_deleted_only_where_evidence_is_asked_for() -> None:
    found: dict[str, set[str]] = {}
    for source in product():
        if ".delete(" not in source.text or source.name.startswith(_OUTSIDE) or source.name in _ON_HOST:
            continue
        for function in ast.walk(source.tree):
            if not isinstance(function, ast.AsyncFunctionDef):
                continue
            if any(_deletes_in_member(node) for node in ast.walk(function)):
                found.setdefault(source.name, set()).add(function.name)
    for functions in found.values():
        functions.discard("delete")  # the closure in `remove`, and names of methods that are listed by their module
    assert {name for name in found if name not in OF_MEMBERS} == set()
    assert {
        (name, function)
        for name, functions in found.items()
        for function in functions
        if function not in OF_MEMBERS[name]
    } == set()


def _deletes_in_member(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "delete":
        return False
    receiver = ast.unparse(node.func.value)
    return receiver in _MEMBER or "_members" in receiver
