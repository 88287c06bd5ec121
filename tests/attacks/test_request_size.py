"""One request must not stop the server: small or large bodies that expand, nest or repeat are refused quickly.

Each input took between half a second and minutes, or gigabytes, before its limit existed. The bounds are a tenth of that
or less, and ten times what the refusal takes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from tests.support.cputime import least_cpu_s
from tests.support.hostile.world import ADMIN, Answer, HostileRequest, Target, a_target

from federation.apimachinery import jsonsize, objectmeta, paths, quantity, selectors
from federation.apimachinery.errors import BadRequest, InvalidInput
from federation.apimachinery.jsonpatch import Document, PatchError, apply_json_patch
from federation.apimachinery.textcache import cache_short
from federation.apiserver.http.decoding import decode_object
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.schema.defaulting import apply_defaults
from federation.planning.overrides.patches import apply_patches

SECONDS_MAX = 2.0
CONFIG_MAPS = "/api/v1/namespaces/kept/configmaps"
WIDGET = "/apis/example.com/v1/namespaces/kept/widgets/kept"
DRY = "?dryRun=All&fieldManager=x"
JSON, YAML = "application/json", "application/yaml"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


def a_request(method: str, target: str, body: object, content_type: str) -> HostileRequest:
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return HostileRequest(method, target, (("content-type", content_type),), content, ADMIN)


def a_config_map(**fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, **fields}


def keys(count: int) -> dict[str, str]:
    return {f"k{index}": "" for index in range(count)}


def nested_by_moves(levels: int) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = [{"op": "add", "path": "/x", "value": {"c": 1}}]
    for _ in range(levels):
        steps += [
            {"op": "add", "path": "/w", "value": {"c": 1}},
            {"op": "move", "from": "/x", "path": "/w/c"},
            {"op": "move", "from": "/w", "path": "/x"},
        ]
    return steps


def doubled(times: int) -> list[dict[str, object]]:
    start: dict[str, object] = {"op": "add", "path": "/data", "value": {"a": []}}
    return [start, *({"op": "copy", "from": "/data/a", "path": "/data/a/-"} for _ in range(times))]


INPUTS = {
    "190,000 empty keys": ("POST", CONFIG_MAPS, a_config_map(data=keys(190_000)), JSON),
    "an array of 2.9 MB": ("POST", CONFIG_MAPS, b"[" + b"[]," * 966_000 + b"[]]", JSON),
    "a list of a million maps": ("POST", CONFIG_MAPS, b'{"a":[' + b"{}," * 966_000 + b"{}]}", JSON),
    "duplicates below a key of a megabyte": (
        "POST",
        CONFIG_MAPS,
        b'{"' + b"k" * 1_000_000 + b'" : {' + b'"a":1,' * 90_000 + b'"a":1}}',
        JSON,
    ),
    "150,000 labels": ("POST", CONFIG_MAPS, a_config_map(metadata={"name": "x", "labels": keys(150_000)}), JSON),
    "an apply of 150,000 keys": ("PATCH", f"{CONFIG_MAPS}/kept", a_config_map(data=keys(150_000)), APPLY),
    "a merge patch of 200,000 keys": ("PATCH", f"{CONFIG_MAPS}/kept", {"data": keys(200_000)}, MERGE),
    "19 doublings": ("PATCH", f"{CONFIG_MAPS}/kept", doubled(19), JSON_PATCH),
    "26 doublings": ("PATCH", f"{CONFIG_MAPS}/kept", doubled(26), JSON_PATCH),
    "300 levels built by moves": ("PATCH", WIDGET, nested_by_moves(300), JSON_PATCH),
    "a copy of 300 levels": (
        "PATCH",
        WIDGET,
        [*nested_by_moves(300), {"op": "copy", "from": "/x", "path": "/y"}],
        JSON_PATCH,
    ),
    "a pointer of 2.9 MB": (
        "PATCH",
        f"{CONFIG_MAPS}/kept",
        [{"op": "add", "path": "/a" * 1_450_000, "value": 1}],
        JSON_PATCH,
    ),
    "an index of 4,000 digits": (
        "PATCH",
        f"{CONFIG_MAPS}/kept",
        [{"op": "add", "path": "/metadata/finalizers/" + "9" * 4000, "value": 1}],
        JSON_PATCH,
    ),
    "base 60 with 200,000 digits": ("POST", CONFIG_MAPS, b"a: 1" + b":1" * 200_000, YAML),
    "a tagged number of base 60": ("POST", CONFIG_MAPS, b"a: !!int 1" + b":1" * 200_000, YAML),
    "aliases in YAML": (
        "POST",
        CONFIG_MAPS,
        b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c, c, *[c - 1] * 4) for c in range(98, 113)),
        YAML,
    ),
    "a body nested 100,000 levels": ("POST", CONFIG_MAPS, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, JSON),
    "a number of 100,000 digits": ("POST", CONFIG_MAPS, b'{"a":' + b"9" * 100_000 + b"}", JSON),
    "a lone surrogate": ("POST", CONFIG_MAPS, b'{"a":"\\ud800"}', JSON),
}


@pytest.fixture(scope="module", params=INPUTS)
def hostile(request: pytest.FixtureRequest) -> HostileRequest:
    method, target, body, content_type = INPUTS[request.param]
    return a_request(method, target + DRY, body, content_type)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    """One server for all requests that change nothing."""
    async with a_target(tmp_path_factory.mktemp("target")) as found:
        yield found


async def timed(target: Target, request: HostileRequest) -> tuple[Answer, float]:
    return await least_cpu_s(lambda: target.send(request), SECONDS_MAX)


@pytest.mark.asyncio(loop_scope="module")
async def test_each_input_is_refused_with_a_status_in_time(target: Target, hostile: HostileRequest) -> None:
    answer, seconds = await timed(target, hostile)
    assert 400 <= answer.status < 500, answer.body[:300]
    assert not answer.problem(hostile)
    assert seconds < SECONDS_MAX


@pytest.mark.asyncio(loop_scope="module")
async def test_the_refusal_of_a_large_object_names_limit_and_remedy(target: Target) -> None:
    answer = await target.send(a_request("POST", CONFIG_MAPS, a_config_map(data=keys(100_001)), JSON))
    assert answer.status == 413
    assert "more than 100000 values" in orjson.loads(answer.body)["message"]
    assert "split it into several objects" in orjson.loads(answer.body)["message"]


async def test_patches_cannot_grow_an_object_beyond_the_limit(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        request = a_request("PATCH", f"{CONFIG_MAPS}/kept", {"data": keys(60_000)}, MERGE)
        assert (await target.send(request)).status == 200
        more = {f"l{index}": "" for index in range(60_000)}
        answer = await target.send(a_request("PATCH", f"{CONFIG_MAPS}/kept", {"data": more}, MERGE))
        assert answer.status == 413


async def test_a_large_text_counts_as_one_value(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        body = a_config_map(metadata={"name": "csv"}, data={"table": "a,{b},[c]," * 90_000})
        assert (await target.send(a_request("POST", CONFIG_MAPS, body, JSON))).status == 201


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("directive", ["$deleteFromPrimitiveList/finalizers", "$retainKeys"])
async def test_strategic_directives_take_linear_time(target: Target, directive: str) -> None:
    names = [f"a.b/{index}" for index in range(40_000)]
    body = {directive: names, **({"finalizers": names} if "finalizers" in directive else dict.fromkeys(names, ""))}
    request = a_request("PATCH", f"{CONFIG_MAPS}/kept{DRY}", {"metadata": body}, STRATEGIC)
    _, seconds = await timed(target, request)
    assert seconds < SECONDS_MAX


async def test_copies_of_small_values_do_not_copy_the_list_each_time() -> None:
    steps = [{"op": "add", "path": "/l", "value": [0] * 80_000}]
    steps += [{"op": "copy", "from": "/l/0", "path": "/l/-"}] * 9_990

    async def apply() -> int:
        return len(apply_json_patch({}, steps)["l"])

    length, seconds = await least_cpu_s(apply, SECONDS_MAX)
    assert length == 89_990
    assert seconds < SECONDS_MAX


def test_insertions_before_many_items_are_limited() -> None:
    document = Document({"l": [0] * 90_000})
    for _ in range(553):
        document.apply("add", ("l", "0"), 1)
    with pytest.raises(PatchError, match="list items"):
        document.apply("add", ("l", "0"), 1)


def test_override_patches_cannot_nest_without_end() -> None:
    inner: object = 1
    for _ in range(100):
        inner = {"a": inner}
    patches = [{"op": "add", "path": "/spec" + "/a" * 99 * times, "value": inner} for times in range(1, 4)]
    with pytest.raises(InvalidInput, match="levels"):
        apply_patches({"spec": {"a": inner}}, patches)


def test_defaults_cannot_multiply_an_object() -> None:
    schema = from_openapi(
        {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "big": {
                                "type": "array",
                                "default": list(range(1000)),
                                "items": {"type": "integer"},
                            }
                        },
                    },
                }
            },
        }
    )
    with pytest.raises(Exception, match="defaults"):
        apply_defaults(schema, {"items": [{} for _ in range(10_000)]})


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(paths.parse, id="path"),
        pytest.param(selectors.parse_label_selector, id="label selector"),
        pytest.param(selectors.parse_field_selector, id="field selector"),
        pytest.param(objectmeta._key_problems, id="key"),
        pytest.param(quantity._canonical, id="quantity"),
    ],
)
def test_caches_do_not_keep_long_texts(function) -> None:
    entries = function.__self__
    function("a=" + "x" * 50)
    assert "a=" + "x" * 50 in entries
    with contextlib.suppress(BadRequest):
        function("a=" + "x" * 100_000)
    assert all(len(text) < 1000 for text in entries)


def test_a_cache_of_texts_has_a_limited_size() -> None:
    calls = []
    cached = cache_short(8)(lambda given: calls.append(given) or len(calls))
    long = "x" * 1000
    assert [cached(long), cached(long), cached("x"), cached("x")] == [1, 2, 3, 3]
    for number in range(100):
        cached(str(number))
    assert len(cached.__self__) <= 8  # type: ignore[attr-defined]


def test_duplicates_are_reported_up_to_a_number() -> None:
    body = b'{"kind":"x",' + b",".join(b'"k%d":1,"k%d":2' % (index, index) for index in range(1000)) + b"}"
    assert len(decode_object(body, JSON)[1]) == 100


def test_counting_is_exact_without_strings() -> None:
    assert jsonsize.has_more_values(b"[" + b"1," * 999 + b"1]", 999)
    assert not jsonsize.has_more_values(b"[" + b"1," * 999 + b"1]", 1000)
    assert not jsonsize.has_more_values(b'["' + rb"a,\"[{" * 999 + b'"]', 1)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_wide_body_leaves_the_event_loop_to_others(target: Target) -> None:
    body = b"a: [" + b"x," * 30_000 + b"]"
    attack = asyncio.create_task(target.send(a_request("POST", CONFIG_MAPS + DRY, body, YAML)))
    await asyncio.sleep(0)
    await target.send(HostileRequest("GET", f"{CONFIG_MAPS}/kept"))
    assert not attack.done(), "the body was decoded on the event loop"
    await attack
