"""Random requests, valid or not: every kind, verb and body, on objects that may appear and disappear.

They address the namespace `scratch` and cluster-scoped objects named `scratch-…`, where accepted requests may write;
`may_write` checks that a request writes nothing else.
"""

import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from federation.apimachinery.resources import Object
from tests.support.hostile.nonsense import TEXTS, WORDS, anything, broken, mutated, to_json
from tests.support.hostile.requests import JSON, YAML, Victim
from tests.support.hostile.world import ADMIN, KEPT, UNPRIVILEGED, HostileRequest
from tests.support.rest import APPLY, JSON_PATCH, MERGE, METADATA, STRATEGIC, TABLE

SCRATCH = "scratch"
_NAMES = ("scratch-a", "scratch-b", "scratch-c")
_PARAMETERS = (
    "watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
    "timeoutSeconds", "timeout", "dryRun", "fieldManager", "fieldValidation", "force", "pretty", "propagationPolicy",
    "gracePeriodSeconds", "orphanDependents", "includeObject", "allowWatchBookmarks",
)  # fmt: skip
_VALUES = (
    "",
    "0",
    "1",
    "-1",
    "true",
    "false",
    "x",
    "All",
    "Exact",
    "NotOlderThan",
    "Orphan",
    "Foreground",
    "Strict",
    "Ignore",
    "a=b,c!=d",
    "app",
    "1s",
    "é",
)
_TYPES = {
    "POST": (JSON, JSON, JSON, YAML),
    "PUT": (JSON, JSON, YAML),
    "PATCH": (MERGE, STRATEGIC, APPLY, JSON_PATCH),
    "DELETE": (JSON,),
    "GET": (JSON,),
}


class Chaos:
    """A client that sends random requests."""

    def __init__(self, seed: int, victims: list[Victim]) -> None:
        self._rng = random.Random(seed)
        # Definitions, admission and roles affect all later requests, so they are only sent as dry runs.
        self._victims = victims

    def requests(self, number: int) -> Iterator[HostileRequest]:
        """Yield `number` requests; the same seed and victims give the same ones."""
        for _ in range(number):
            yield self._request()

    def _request(self) -> HostileRequest:
        rng = self._rng
        victim = rng.choice(self._victims)
        is_global = KEPT not in victim.collection
        collection = victim.collection.replace(f"/{KEPT}/", f"/{SCRATCH}/")
        name = rng.choice(_NAMES)
        method = rng.choice(("POST", "POST", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "GET"))
        target = collection if method == "POST" or (rng.random() < 0.1 and not is_global) else f"{collection}/{name}"
        if target != collection and rng.random() < 0.2:
            target += "/" + rng.choice(("status", "scale", "eviction", "binding", "token", "finalize"))
            method = rng.choice(("POST", method))
        query = (
            {name: rng.choice(_VALUES) for name in rng.choices(_PARAMETERS, k=rng.randrange(4))}
            if rng.random() < 0.4
            else {}
        )
        if method == "PATCH" and rng.random() < 0.7:
            query["fieldManager"] = rng.choice(("one", "two"))
        if "/admissionregistration.k8s.io/" in collection:
            query["dryRun"] = "All"  # a stored one would affect all later requests
        type_ = rng.choice(_TYPES[method])
        headers = (("content-type", type_), ("accept", rng.choice((JSON, JSON, TABLE, METADATA, YAML))))
        peer = ADMIN if rng.random() < 0.95 else UNPRIVILEGED
        about = f"chaos {method}"
        return HostileRequest(
            method, f"{target}?{urlencode(query)}", headers, self._body(victim, method, name, type_), peer, about
        )

    def _body(self, victim: Victim, method: str, name: str, type_: str) -> bytes:
        rng = self._rng
        if method in ("GET", "DELETE"):
            return (
                to_json({rng.choice(("propagationPolicy", "gracePeriodSeconds", "dryRun", "kind")): anything(rng, 1)})
                if rng.random() < 0.2
                else b""
            )
        if type_ == JSON_PATCH:
            return to_json(
                [
                    {
                        "op": rng.choice(("add", "replace", "remove")),
                        "path": f"/{rng.choice(WORDS[:9])}/{rng.choice(WORDS)}",
                        "value": anything(rng),
                    }
                ]
            )
        body = self._renamed(victim.config(), name)
        roll = rng.random()
        if roll < 0.4:
            body = mutated(rng, body)
        elif roll < 0.5 and isinstance(body.get("metadata"), dict):
            body["metadata"][
                rng.choice(
                    ("ownerReferences", "finalizers", "labels", "annotations", "generateName", "deletionTimestamp")
                )
            ] = self._metadata(victim)
        elif roll < 0.55:
            return broken(rng, to_json(body))
        return to_json(self._renamed(body, name) if isinstance(body, dict) else body)

    def _metadata(self, victim: Victim) -> Any:
        rng = self._rng
        owner = {
            "apiVersion": victim.obj["apiVersion"],
            "kind": victim.obj["kind"],
            "name": rng.choice((*_NAMES, KEPT)),
            "uid": rng.choice(("x", victim.obj["metadata"]["uid"])),
        }
        return rng.choice(
            (
                [owner],
                [owner, owner],
                ["foregroundDeletion"],
                ["orphan"],
                ["example.com/x"],
                {"app": rng.choice(TEXTS[:12])},
                "scratch-",
                anything(rng, 2),
            )
        )

    def _renamed(self, body: Object, name: str) -> Object:
        """Return the body with a name that may be written; definitions keep one that fits their group."""
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            return body
        metadata = {**metadata, "name": name}
        if metadata.get("namespace") == KEPT:
            metadata["namespace"] = SCRATCH
        return {**body, "metadata": metadata}


def may_write(request: HostileRequest, key: str) -> bool:
    """Return whether an accepted request may write a key: in its collection, or the budget of an eviction."""
    parts = request.target.partition("?")[0].split("/")
    version = 2 if parts[1] == "api" else 3
    resource = parts[version + 3] if f"/namespaces/{SCRATCH}/" in request.target else parts[version + 1]
    place = f"/{resource}/{SCRATCH}"
    return place in key or ("/eviction" in request.target and f"/poddisruptionbudgets/{SCRATCH}/" in key)
