"""The requests of the comparison on one server."""

import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.kubernetes.differences import corpus, expressions, protocol
from tests.kubernetes.differences.answers import Answer, sent
from tests.kubernetes.differences.metadata import metadata_requests
from tests.kubernetes.differences.mutated import manifest_requests, mutated_requests, patch_requests
from tests.kubernetes.differences.requests import MANAGER, NAMESPACE, Request, Target, key, request, targets, within
from tests.kubernetes.differences.warned import warned_requests
from tests.support.rest import Api, Object, Refused, eventually

_CONNECTIONS: Final = 8
_READ: Final = ("Pod", "Node", "Deployment", "Judges")
"""Kinds whose collections get odd requests."""
_WRITTEN: Final = ("Pod", "ConfigMap", "Deployment", "ClusterRole", "Judges")
"""Kinds that get odd writes."""
SHARES: Final = {
    "metadata": 0.3,
    "creates": 0.6,
    "updates": 0.4,
    "identity": 0.3,
    "parts": 0.25,
    "cel": 0.5,
    "paths": 0.6,
}
"""The share of an area's requests that a seed chooses; all of the other areas."""


def ensure_namespace(api: Api) -> None:
    """Create the namespace of the requests and its service account, and make it that of `api`."""
    api.namespace = NAMESPACE
    for plural, name in (("namespaces", NAMESPACE), ("serviceaccounts", "default")):
        try:
            api.create(plural, {"metadata": {"name": name}})
        except Refused as refused:
            # A controller may make the service account at the same moment.
            if refused.reason != "AlreadyExists":
                raise


def prepare(api: Api) -> dict[str, Object]:
    """Store the seeds and what they need, and return the stored objects by kind and name."""
    ensure_namespace(api)
    stored = {}
    served, judge = targets(), expressions.JUDGE
    for seed in (judge, *(each.obj for each in corpus.seeds())):
        kind = served[seed["apiVersion"], seed["kind"]]
        if found := _store(api, kind, seed):
            stored[key(seed)] = found
    eventually(lambda: api.http.get(expressions.JUDGES.root).status_code == 200)
    a_judge = expressions.a_judge("stored", {"n": 1})
    if found := _store(api, expressions.JUDGES, a_judge):
        stored[key(a_judge)] = found
    return stored


def _store(api: Api, kind: Target, obj: Object) -> Object | None:
    answer = sent(api.http, request("seed", "POST", kind.root, within(obj, kind), fieldManager=MANAGER))
    name = obj["metadata"].get("name")
    if answer.code == 409 and name:
        answer = sent(api.http, request("seed", "GET", f"{kind.root}/{name}"))
    found: Object | None = answer.body if answer.is_accepted and name else None
    return found


def requests(stored: dict[str, Object], seed: int = 0) -> Iterator[Request]:
    """Yield the requests of all areas that the seed chooses."""
    for each in every_request(stored):
        chance = zlib.crc32(f"{seed}:{each.origin}".encode()) / 2**32
        if chance < SHARES.get(each.area, 1):
            yield each


def every_request(stored: dict[str, Object], *, with_manifests: bool = True) -> Iterator[Request]:
    """Yield the requests of all areas."""
    served = targets()
    seeds = [each.obj for each in corpus.seeds()]
    if with_manifests:
        manifests = [each for each in corpus.manifests() if "bootstrappolicy" not in each.origin]
        yield from manifest_requests(served, [*manifests, *corpus.seeds()])
    met = set()
    judge = expressions.a_judge("stored", {"n": 1})
    for obj in [*seeds, judge]:
        kind = expressions.JUDGES if obj is judge else served[obj["apiVersion"], obj["kind"]]
        live = stored.get(key(obj))
        yield from mutated_requests(kind, obj, live)
        if live is not None:
            yield from patch_requests(kind, obj, live)
        if kind in met or not obj["metadata"].get("name"):
            continue
        met.add(kind)
        yield from metadata_requests(kind, obj, live)
        if live is None:
            continue
        yield from protocol.part_requests(kind, obj, live)
        yield from protocol.identity_requests(kind, obj, live)
        if obj["kind"] in _READ:
            yield from protocol.collection_requests(kind, obj)
        if obj["kind"] in _WRITTEN:
            yield from protocol.write_requests(kind, obj, live)
        if obj["kind"] in {"Deployment", "ReplicationController"}:
            yield from protocol.scale_requests(kind, live)
        if obj["kind"] == "Pod":
            yield from protocol.eviction_requests(kind, live)
    yield from protocol.path_requests()
    yield from protocol.yaml_requests()
    yield from expressions.expression_requests()
    yield from expressions.judged_requests()
    yield from warned_requests()


def answers(api: Api, listed: Iterable[Request]) -> dict[str, Answer]:
    """Send the requests and return the answers by origin."""
    found: dict[str, Answer] = {}
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for each, answer in pool.map(lambda each: (each, sent(api.http, each)), listed):
            assert each.origin not in found, each.origin
            found[each.origin] = answer
    return found
