"""Objects of all members in one list: pages, members that do not answer, and names with several meanings."""

from typing import Any

import orjson
import pytest
from tests.unit.memberproxy.members import ALICE, Holding, a_configmap, a_pool

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import BadRequest, Conflict, Expired, Forbidden, NotFound, ServiceUnavailable
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES
from federation.apiserver.auth.identity import User
from federation.apiserver.http.asgi import Request
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import ListOptions
from federation.client.local import LocalClient
from federation.memberproxy import mergedtokens
from federation.memberproxy.mergedreader import MergedOptions, MergedReader
from federation.memberproxy.placedclusters import EveryCluster, PlacedClusters


class Federation:
    """A host with two ConfigMaps, and members."""

    def __init__(self, *, is_hosting: bool = False, options: MergedOptions | None = None, **members: Holding) -> None:
        clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=clock), clock=clock)
        self.info = self.registry.kinds.lookup("", "v1", "configmaps")
        self.members, self.pool, self.request = members, a_pool(clock, **members), a_request()
        host = self.registry if is_hosting else None
        options = options or MergedOptions(answer_s_max=0.05)
        self.reader = MergedReader(CONFIGMAPS, host, self.pool, EveryCluster(self.pool), clock, options)

    async def begin(self) -> None:
        host = LocalClient(self.registry)
        await host.create(NAMESPACES, {"metadata": {"name": "default"}})
        for name in ("own-1", "own-2"):
            head = {"apiVersion": "v1", "kind": "ConfigMap"}
            await host.create(CONFIGMAPS, {**head, "metadata": {"name": name, "namespace": "default"}})

    async def page(self, **options: Any) -> tuple[list[str], str]:
        """Return the names of one page, and the token of the next."""
        found = await self.reader.list(self.request, self.info, "default", ListOptions(**options))
        return [orjson.loads(item)["metadata"]["name"] for item in found.items], found.continue_token

    async def all(self, limit: int) -> list[list[str]]:
        """Return the names of all pages."""
        pages, token = [], ""
        while not pages or token:
            names_, token = await self.page(limit=limit, continue_token=token)
            pages.append(names_)
            assert len(pages) < 50
        return pages

    async def find(self, name: str) -> tuple[str, str]:
        cluster, obj = await self.reader.find(self.request, "default", name)
        return cluster, obj["metadata"]["name"]


def a_request(user: User = ALICE, agent: str = "kubectl/v1.36", query: str = "") -> Request:
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode()}
    request = Request({**scope, "headers": [(b"user-agent", agent.encode())]}, None, None)  # type: ignore[arg-type]
    request.user = user
    return request


def holding(count: int, first: str = "a") -> Holding:
    return Holding(*(a_configmap(chr(ord(first) + number)) for number in range(count)))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 9, 100])
@pytest.mark.parametrize("counts", [(3, 0, 2), (1, 4, 1), (0, 0, 0), (5, 5, 5)])
async def test_all_pages_together_are_all_objects_once(limit: int, counts: tuple[int, int, int]) -> None:
    members = {f"m{number}": holding(count) for number, count in enumerate(counts, start=1)}
    federation = Federation(is_hosting=True, **members)
    await federation.begin()
    pages = await federation.all(limit)
    expected = [f"{name}-{obj['metadata']['name']}" for name, member in members.items() for obj in member.objects]
    assert [name for page in pages for name in page] == ["own-1", "own-2", *expected]
    assert all(len(page) <= limit for page in pages)
    assert federation.request.warnings == []


async def test_a_list_has_the_revisions_of_all_and_says_that_there_is_more() -> None:
    federation = Federation(is_hosting=True, options=MergedOptions(page_max=3), m1=holding(3), m2=Holding(revision="7"))
    await federation.begin()
    found = await federation.reader.list(federation.request, federation.info, "default", ListOptions())
    revisions = mergedtokens.decode_revisions(str(found.resource_version))
    assert {key: value for key, value in revisions.items() if key} == {"m1": "9", "m2": "7"}
    assert int(revisions[mergedtokens.HOST]) > 0
    assert (len(found.items), bool(found.continue_token)) == (3, True)
    assert federation.request.warnings == ["the list has the first 3 objects only: use limit and continue"]
    rest = await federation.reader.list(
        federation.request, federation.info, "default", ListOptions(continue_token=found.continue_token)
    )
    assert rest.resource_version == found.resource_version
    assert rest.continue_token == ""


async def test_a_list_that_is_not_older_than_another_has_the_objects_of_the_host() -> None:
    federation = Federation(is_hosting=True, m1=holding(1))
    await federation.begin()
    first = await federation.reader.list(federation.request, federation.info, "default", ListOptions())
    revision = str(first.resource_version)
    assert await federation.page(resource_version=revision) == (["own-1", "own-2", "m1-a"], "")


async def test_what_a_list_shows_is_marked_with_its_cluster() -> None:
    federation = Federation(m1=holding(1))
    found = await federation.reader.list(federation.request, federation.info, "default", ListOptions())
    (shown,) = map(orjson.loads, found.items)
    assert shown["metadata"]["annotations"] == {names.MEMBER_CLUSTER: "m1", names.RAW_NAME: "a"}
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("down", "configmaps of cluster m2 are missing: connection refused"),
        ("hang", "configmaps of cluster m2 are missing: no answer in 0.05 s"),
        ("403", "configmaps of cluster m2 are missing: "),
        ("500", "configmaps of cluster m2 are missing: "),
    ],
)
async def test_a_member_that_does_not_answer_is_named_and_hides_no_other(mode: str, text: str) -> None:
    federation = Federation(m1=holding(1), m2=holding(1), m3=holding(1))
    federation.members["m2"].mode = mode
    assert await federation.page() == (["m1-a", "m3-a"], "")
    (warning,) = federation.request.warnings
    assert warning.startswith(text)


async def test_a_member_that_fails_between_pages_is_named() -> None:
    federation = Federation(m1=holding(4), m2=holding(2))
    page, token = await federation.page(limit=2)
    assert page == ["m1-a", "m1-b"]
    federation.members["m1"].mode = "down"
    assert await federation.page(limit=9, continue_token=token) == (["m2-a", "m2-b"], "")
    assert len(federation.request.warnings) == 1


async def test_an_expired_token_of_a_member_makes_the_client_list_again() -> None:
    federation = Federation(m1=holding(4))
    _, token = await federation.page(limit=2)
    federation.members["m1"].mode = "410"
    with pytest.raises(Expired):
        await federation.page(limit=2, continue_token=token)


async def test_a_member_that_has_left_ends_its_part_of_a_list() -> None:
    federation = Federation(m1=holding(4), m2=holding(1))
    _, token = await federation.page(limit=2)
    federation.pool.remove("m1")
    assert await federation.page(limit=5, continue_token=token) == (["m2-a"], "")


async def test_objects_of_namespaces_that_are_not_shown_are_left_out_on_every_page() -> None:
    mixed = [a_configmap(str(number), namespace="default" if number % 2 else "hidden") for number in range(6)]
    federation = Federation(m1=Holding(*mixed))
    placed = PlacedClusters(federation.pool)
    entry = {"placements": [{"controller": "c", "placement": [{"cluster": "m1"}]}]}
    placed.changed(None, {"metadata": {"namespace": "default"}, "spec": entry})
    federation.reader = MergedReader(CONFIGMAPS, None, federation.pool, placed, ManualClock())
    found = await federation.reader.list(federation.request, federation.info, "", ListOptions(limit=4))
    shown = [orjson.loads(item)["metadata"] for item in found.items]
    assert [each["name"] for each in shown] == ["m1-1", "m1-3", "m1-5"]


async def test_an_exact_revision_and_a_foreign_token_are_refused() -> None:
    federation = Federation(m1=holding(1))
    with pytest.raises(BadRequest, match="Exact"):
        await federation.page(resource_version_match="Exact")
    with pytest.raises(BadRequest):
        await federation.page(continue_token="x")


async def test_a_field_selector_for_names_asks_only_the_clusters_that_can_have_them() -> None:
    federation = Federation(m1=holding(1), m2=holding(1))
    await federation.page(field_selector="metadata.name=m1-a")
    assert len(federation.members["m1"].targets) == 1
    assert "fieldSelector=metadata.name" in federation.members["m1"].targets[0]
    assert federation.members["m2"].targets == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a-b-c", ("a", "b-c")), ("a-b-d", ("a-b", "d")), ("a-b", None), ("b-b-c", None), ("a-x", None)],
)
async def test_a_name_is_resolved_in_every_cluster_that_it_can_mean(
    name: str, expected: tuple[str, str] | None
) -> None:
    federation = Federation(a=Holding(a_configmap("b-c")), a_b=Holding(a_configmap("d")))
    if expected is None:
        with pytest.raises(NotFound):
            await federation.find(name)
    else:
        assert await federation.find(name) == expected


async def test_a_name_with_two_meanings_is_a_conflict() -> None:
    federation = Federation(a=Holding(a_configmap("b-c")), a_b=Holding(a_configmap("c")))
    with pytest.raises(Conflict, match='"b-c" in cluster "a" and "c" in cluster "a-b"'):
        await federation.find("a-b-c")


@pytest.mark.parametrize(
    ("mode", "error"),
    [("down", ServiceUnavailable), ("hang", ServiceUnavailable), ("500", ServiceUnavailable), ("403", None)],
)
async def test_a_second_meaning_that_is_unknown_is_no_answer(mode: str, error: type[Exception] | None) -> None:
    federation = Federation(a=Holding(a_configmap("b-c")), a_b=Holding())
    federation.members["a_b"].mode = mode
    if error is None:
        assert await federation.find("a-b-c") == ("a", "b-c")
    else:
        with pytest.raises(error):
            await federation.find("a-b-c")


async def test_a_refusal_is_told_where_nothing_is_found() -> None:
    federation = Federation(a=Holding(), a_b=Holding())
    federation.members["a"].mode = "403"
    with pytest.raises(Forbidden):
        await federation.find("a-b-c")


async def test_a_name_whose_end_is_a_hash_is_found_in_the_list_of_its_cluster() -> None:
    long = "x" * 250
    member = Holding(*(a_configmap(f"{number}{long}"[:250]) for number in range(3)))
    federation = Federation(options=MergedOptions(page_max=1), east_1=member)
    shown, _ = await federation.page(limit=1)
    assert len(shown[0]) == 253
    assert (await federation.find(shown[0]))[0] == "east-1"
    with pytest.raises(NotFound):
        await federation.find(shown[0][:-1] + ("0" if shown[0][-1] != "0" else "1"))


async def test_the_host_has_the_first_meaning_of_a_name() -> None:
    federation = Federation(is_hosting=True, own=Holding(a_configmap("1")), m1=holding(1))
    await federation.begin()
    found = orjson.loads(await federation.reader.get(federation.request, federation.info, "default", "own-1"))
    assert "annotations" not in found["metadata"]
    found = orjson.loads(await federation.reader.get(federation.request, federation.info, "default", "m1-a"))
    assert found["metadata"]["annotations"][names.MEMBER_CLUSTER] == "m1"


@pytest.mark.parametrize(
    ("user", "agent", "answers"),
    [
        ("alice", "kubectl/v1.36", True),
        ("system:node:n1", "x", False),
        ("system:serviceaccount:kube-system:gc", "x", False),
        ("system:serviceaccount:default:web", "x", True),
        ("system:kube-scheduler", "x", False),
        ("kubelet", "x", False),
        ("alice", "kube-controller-manager/v1", False),
        ("alice", "my kube-controller-manager/v1", True),
    ],
)
def test_components_of_kubernetes_see_their_own_objects_only(user: str, agent: str, answers: bool) -> None:
    assert Federation(m1=holding(0)).reader.answers(a_request(User(user), agent)) is answers
