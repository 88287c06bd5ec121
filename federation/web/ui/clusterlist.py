"""The FederatedClusters that the user may list, as far as screens show them.

Four fifths of a FederatedCluster are the kinds that it serves, which no list shows. They are skipped while the answer
is parsed: 1,000 clusters are ten megabytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.usedtime import charged
from federation.web.ui.screen import Page


class _Metadata(TypedDict, total=False):
    name: str
    labels: dict[str, str]


class _Spec(TypedDict, total=False):
    taints: list[dict[str, Any]]


class _Status(TypedDict, total=False):
    conditions: list[dict[str, Any]]
    credential: dict[str, Any]
    kubernetesVersion: str  # the field's name in the API
    region: str
    resources: dict[str, Any]


class _Cluster(TypedDict, total=False):
    metadata: _Metadata
    spec: _Spec
    status: _Status


class _List(TypedDict):
    items: list[_Cluster]


_DECODER = msgspec.json.Decoder(_List)


async def read_clusters(page: Page) -> Sequence[Mapping[str, Any]]:
    """Return the clusters with what `clustercards.py` and `clustershare.py` read; Forbidden without the permission."""
    answer = await page.api.send("GET", FEDERATED_CLUSTERS.path())
    with charged():
        return _DECODER.decode(answer)["items"]


async def read_visible_clusters(page: Page) -> Sequence[Mapping[str, Any]] | None:
    """Return the same, None for a user who may not list clusters, and on a host that has none."""
    try:
        return await read_clusters(page)
    except (Forbidden, NotFound):
        return None
