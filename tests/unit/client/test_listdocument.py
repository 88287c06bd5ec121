"""Lists whose items are parsed when they are read, over real HTTP where a server can send anything."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import ClusterError
from federation.apimachinery.resources import CONFIGMAPS
from federation.client.listdocument import split_list

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(items=st.lists(JSON), indent=st.booleans())
def test_items_are_those_of_a_parser_that_reads_everything(items: list[object], indent: bool) -> None:
    text = orjson.dumps({"items": items, "metadata": {"x": 1}}, option=orjson.OPT_INDENT_2 if indent else 0)
    wanted = orjson.loads(text)
    found = split_list(text, orjson.loads)
    assert found is not None
    assert found["metadata"] == wanted["metadata"]
    assert len(found["items"]) == len(wanted["items"])
    assert list(found["items"]) == wanted["items"]
    assert list(found["items"][1:3]) == wanted["items"][1:3]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"items":{}}',
        b'{"items":[1,]}',
        b'{"items":[]} x',
        b'{"metadata":"x"}',
        b'{"metadata":{"a":"\xff"}}',
        b'{"items":[' + b"[" * 2000 + b"]" * 2000 + b"]}",
    ],
)
def test_text_that_is_no_plain_list_is_left_to_the_caller(text: bytes) -> None:
    assert split_list(text, orjson.loads) is None


def test_the_reader_owns_an_item() -> None:
    found = split_list(b'{"items":[{"a":1}]}', orjson.loads)
    assert found is not None
    found["items"][0]["a"] = 2
    assert found["items"][0] == {"a": 1}


async def test_an_item_with_malformed_text_fails_the_list_that_reads_it(serve, connect, answered) -> None:
    body = b'{"items":[{"metadata":{"name":"good"}},{"metadata":{"name":"\xff"}}]}'
    server = await serve(lambda head: answered(body))
    client = connect(server.connection)
    page = await client.page(CONFIGMAPS, limit=500)
    assert page.items[0] == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}}
    with pytest.raises(ClusterError, match="malformed JSON"):
        page.items[1]
    with pytest.raises(ClusterError, match="malformed JSON"):
        await client.list(CONFIGMAPS)
