"""Nonsense of every kind gets a Status of the 400s, never a 500 and never an exception."""

import random
from typing import Any

import orjson
import pytest
from tests.support.apiserver import Parts

from federation.server.peers import Peer

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", ""]
SEGMENTS = [
    "", "api", "apis", "v1", "apps", "batch", "namespaces", "default", "kube-system", "pods", "deployments", "web", "a",
    "configmaps", "secrets", "services", "jobs", "status", "scale", "eviction", "binding", "token", "finalize", "watch",
    "customresourcedefinitions", "apiextensions.k8s.io", "rbac.authorization.k8s.io", "roles", "clusterroles",
    "serviceaccounts", "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "tokenreviews",
    "openapi", "v2", "v3", "healthz", "readyz", "federation", "decisions", "..", "%", "\ud800", "é", "x" * 300, "\0", "*",
]  # fmt: skip
PARAMETERS = [
    "watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch",
    "sendInitialEvents", "timeoutSeconds", "timeout", "dryRun", "fieldManager", "fieldValidation", "force", "pretty",
    "propagationPolicy", "gracePeriodSeconds", "orphanDependents", "includeObject", "allowWatchBookmarks", "kind", "hash",
]  # fmt: skip
VALUES = [
    "", "0", "1", "-1", "true", "false", "x", "All", "Exact", "NotOlderThan", "Orphan", "Strict", "99999999999999999999",
    "a=b,c!=d", "a in (b", "metadata.name=a", "%ff", "%00", "\n", "eyJ2IjoxfQ", "1s", "-1s", "é", "a" * 5000,
]  # fmt: skip
TYPES = [
    "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "", "é",
]  # fmt: skip
ACCEPTS = [
    "", "*/*", "application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", "nonsense",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
]  # fmt: skip
KEYS = [
    "metadata", "spec", "status", "kind", "apiVersion", "name", "namespace", "labels", "annotations", "finalizers", "data",
    "ownerReferences", "managedFields", "resourceVersion", "uid", "replicas", "selector", "matchLabels", "template",
    "containers", "rules", "roleRef", "subjects", "versions", "schema", "names", "group", "ports", "type", "generateName",
    "deletionTimestamp", "creationTimestamp", "$patch", "op", "path", "value", "preconditions", "resourceAttributes", "token",
    "boundObjectRef", "matchExpressions", "target", "limits", "verbs", "$deleteFromPrimitiveList/finalizers", "$retainKeys",
]  # fmt: skip
LEAVES: list[Any] = [None, True, False, 0, -1, 1 << 62, 1.5, 1e300, "", "a", "web", "v1", "apps/v1", "Deployment", "2020-01-01T00:00:00Z", "é\u2028", "x" * 300, [], {}]  # fmt: skip


def value(rng: random.Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(LEAVES)
    if rng.random() < 0.25:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth - 1) for _ in range(rng.randrange(6))}


def body(rng: random.Random) -> bytes:
    kind = rng.randrange(10)
    if kind == 0:
        return rng.randbytes(rng.randrange(60))
    if kind == 1:
        return rng.choice(
            [b"", b"[" * 5000, b'{"a":' * 5000, b"k8s\0\x0a\xff", b"- " * 500, b"\xef\xbb\xbf{}", b"null"]
        )
    made = value(rng, 6)
    if kind < 8 and isinstance(made, dict):
        made.setdefault("metadata", {"name": rng.choice(["a", "web", "", 1, "A_B"])})
    if kind == 8:
        made = [{"op": rng.choice(["add", "remove", "replace", "copy", "move", "test", "x", 1]), "path": rng.choice(["", "/", "/spec", "/metadata/labels/-", "/a/0", 1]), "value": made, "from": "/spec"}]  # fmt: skip
    return orjson.dumps(made)


@pytest.mark.parametrize("seed", range(40))
async def test_hostile_requests_are_answered_with_a_status(parts: Parts, seed: int) -> None:
    rng = random.Random(seed)
    peers = [Peer("admin", ("system:masters",)), Peer("eve", ()), None]
    for number in range(60):
        is_likely = rng.random() < 0.8
        if is_likely:
            group = rng.choice([["api", "v1"], ["apis", "apps", "v1"], ["apis", "rbac.authorization.k8s.io", "v1"], ["apis", "apiextensions.k8s.io", "v1"], ["apis", "authorization.k8s.io", "v1"]])  # fmt: skip
            segments = [
                *group,
                *rng.choice([[], ["namespaces", "default"]]),
                *rng.choices(SEGMENTS, k=rng.randrange(1, 4)),
            ]
        else:
            segments = rng.choices(SEGMENTS, k=rng.randrange(7))
        query = "&".join(f"{rng.choice(PARAMETERS)}={rng.choice(VALUES)}" for _ in range(rng.randrange(4)))
        if "watch" in query or "watch" in segments:
            query += "&timeoutSeconds=1"
        content = body(rng)
        scope = {
            "type": "http",
            "method": rng.choice(METHODS[:5] if is_likely else METHODS),
            "path": "/" + "/".join(segments),
            "query_string": query.encode("utf-8", "surrogatepass"),
            "headers": [
                (b"content-type", rng.choice(TYPES).encode()),
                (b"accept", rng.choice(ACCEPTS).encode()),
                (b"user-agent", rng.choice([b"", b"kubectl/v1.37 (x)", b"\xff"])),
            ],
            "state": {"peer": rng.choice(peers)},
        }
        sent = await drive(parts.app, scope, content)
        assert sent, (seed, number, scope, content[:200])
        assert sent[0]["status"] < 500, (seed, number, scope, content[:500], sent[1:])


async def drive(app: Any, scope: dict[str, Any], content: bytes) -> list[Any]:
    """Send one request; the client goes away right after its body, so that watches end."""
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
