"""Every client that patches objects of users does so in the version that their server stores (docs/decisions/0210).

A client is constructed in the places below only, so that each new one has to say which of the two it is. Requests that
pass no client are looked for by their methods.
"""

import ast
import re

import pytest
from tests.support.sources import product

pytestmark = pytest.mark.xdist_group("syntax trees")

CONSTRUCTORS = frozenset(("Client", "HTTPClient", "LocalClient"))
STORED = {
    "federation/wiring.py": "all controllers, on both kinds of hosts",
    "federation/terminal/kubeconfigcontext.py": "all commands, and the agent in its member",
    "federation/web/ui/usertransport.py": "all actions of the web UI, as the user",
    "federation/client/pool.py": "everything in members",
}
OTHERS = {
    "federation/agent/account.py": "the agent's own account and its rights",
    "federation/agent/registration.py": "the agent's registration",
    "federation/assembly.py": "admission reads; registrations and Secrets of agents; what `wiring.py` wraps",
    "federation/client/storedkinds.py": "reads definitions",
    "federation/cli/demo.py": "creates examples of its own",
    "federation/cli/membercredentials.py": "the accounts and rights that a join creates",
    "federation/existinghost.py": "rights and definitions; what `wiring.py` wraps",
    "federation/hosting/ledclient.py": "what `wiring.py` wraps",
    "federation/web/plans.py": "dry runs",
}
_OUTSIDE = ("federation/apiserver/", "federation/simulator/", "federation/twin/")
"""Servers, the controllers of simulated clusters, and copies of a fleet."""
_METHODS = re.compile(r'"(?:PUT|PATCH)"')
_NAMES_METHODS = {
    "federation/apimachinery/paths.py",
    "federation/client/encoding.py",
    "federation/client/wire.py",
    "federation/tracing/requestspans.py",
}
"""Modules that map methods to verbs, and send nothing of their own."""


def test_each_client_writes_in_the_stored_version_or_nothing_of_users() -> None:
    found = set()
    for source in product():
        if source.name.startswith(_OUTSIDE) or not any(f"{name}(" in source.text for name in CONSTRUCTORS):
            continue
        calls = (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Name) and call.func.id in CONSTRUCTORS for call in calls):
            found.add(source.name)
            assert source.name in STORED or source.name in OTHERS, (
                f"{source.name}: wrap the transport of the client in StoredVersionTransport, and list the module in"
                " STORED; or list it in OTHERS with the objects that it writes, if none of them is a user's"
            )
            is_wrapped = "StoredVersionTransport(" in source.text
            assert is_wrapped == (source.name in STORED), source.name
    assert found == {*STORED, *OTHERS}


def test_no_write_passes_beside_the_clients() -> None:
    found = {source.name for source in product() if _METHODS.search(source.text)}
    assert {name for name in found if not name.startswith(_OUTSIDE)} == _NAMES_METHODS
