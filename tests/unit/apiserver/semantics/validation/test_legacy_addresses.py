"""An address that was valid once may stay in a stored object, and no new one comes in."""

import copy
from datetime import UTC, datetime

import pytest
from tests.conformance.apiserver.objects import a_deployment
from tests.support.rest import Object

from federation.apimachinery.errors import Invalid
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import Kinds
from federation.apiserver.verbs.preparation import prepare_update
from federation.apiserver.verbs.requestoptions import WriteOptions

KINDS = Kinds(builtin_kinds())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = {"namespace": "default", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}


def stored(*addresses: str) -> Object:
    obj = a_deployment()
    obj["metadata"] |= SERVER
    obj["spec"]["template"]["spec"]["hostAliases"] = [{"ip": address, "hostnames": ["a"]} for address in addresses]
    info = KINDS.lookup("apps", "v1", "deployments")
    info.strategy.default(obj)
    return obj


@pytest.mark.parametrize(
    ("before", "after", "is_valid"),
    [
        (["01.2.3.4"], ["01.2.3.4"], True),
        (["01.2.3.4"], ["01.2.3.4", "01.2.3.5"], False),
        (["1.2.3.4"], ["::ffff:1.2.3.4"], False),
        (["::ffff:1.2.3.4"], ["::ffff:1.2.3.4", "1.2.3.4"], True),
    ],
)
def test_updates_keep_what_is_stored(before: list[str], after: list[str], is_valid: bool) -> None:
    old, new = stored(*before), stored(*after)
    new["spec"]["replicas"] = 5
    info = KINDS.lookup("apps", "v1", "deployments")

    def update() -> None:
        options = WriteOptions()
        prepare_update(info, copy.deepcopy(new), old, options, now=NOW, subresource="", is_apply=False)

    if is_valid:
        update()
        return
    with pytest.raises(Invalid, match=r"hostAliases\[\d\].ip"):
        update()
