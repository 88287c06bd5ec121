"""A write of a whole object through an older version of its kind loses what that version cannot say; a patch does not.

So controllers and commands patch what users write (docs/decisions/0210). Whole objects are written of kinds that only
we write, and of built-in ones, whose versions a server converts without loss.
"""

import re

from tests.support.sources import sources

WHOLE = re.compile(r"(?:client|host|member)\.update\(\s*([A-Z][A-Z_]+)\b([^()]*(?:\([^()]*\)[^()]*)*)\)")
OWN = frozenset(("LEASES", "LEFTOVERS", "SECRETS"))
STATUSES = frozenset(("HORIZONTAL_POD_AUTOSCALERS", "UNITED_DEPLOYMENTS", "WORKLOAD_SPREADS"))


def test_nothing_replaces_whole_objects_of_users() -> None:
    found = set()
    for source in sources("federation"):
        if source.name.startswith("federation/simulator/"):
            continue  # the controllers of a cluster write what they own
        for resource, rest in WHOLE.findall(source.text):
            is_status = resource in STATUSES and 'subresource="status"' in rest
            assert resource in OWN or is_status, (
                f"{source.name}: patch the fields of {resource}, so that no others are lost"
            )
            found.add(resource)
    assert found == OWN | STATUSES
