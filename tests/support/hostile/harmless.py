"""Requests that may be answered, but must not write: dry runs of anything, odd reads, reviews; each a recipe of `Harmless`."""

import random
from typing import Any
from urllib.parse import quote, urlencode

from federation.apimachinery.resources import Object
from tests.support.hostile.nonsense import TEXTS, WORDS, anything, mutated, paths, to_json
from tests.support.hostile.requests import JSON, YAML, Sender, Victim, token, with_query
from tests.support.hostile.world import ADMIN, UNPRIVILEGED, HostileRequest
from tests.support.rest import APPLY, JSON_PATCH, MERGE, METADATA, METADATA_LIST, STRATEGIC, TABLE


class Harmless(Sender):
    """Recipes of requests that must not write."""

    def _patch_types(self, victim: Victim) -> tuple[str, ...]:
        return (MERGE, APPLY) if victim.is_custom else (MERGE, STRATEGIC, APPLY)

    def _harmless(self, request: HostileRequest) -> HostileRequest:
        return HostileRequest(
            request.method, request.target, request.headers, request.body, request.peer, request.about
        )

    def mutated_dry_run(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        body = mutated(rng, victim.obj if rng.random() < 0.5 else victim.config())
        if not isinstance(body, dict):
            body = {}
        query = {"dryRun": "All", "fieldManager": "x"}
        if rng.random() < 0.3:
            query["fieldValidation"] = rng.choice(("Strict", "Ignore", "Warn"))
        method, target, type_ = rng.choice(
            [
                ("PUT", victim.path, JSON),
                ("POST", victim.collection, JSON),
                ("PUT", f"{victim.path}/status", JSON),
                *[("PATCH", victim.path, t) for t in self._patch_types(victim)],
            ]
        )
        if type_ == APPLY:
            query["force"] = rng.choice(("true", "false"))
            if isinstance(body.get("metadata"), dict):
                body["metadata"].pop("managedFields", None)
        return self._harmless(self._write(method, target, body, "mutated, dry run", type_, query))

    def patched_dry_run(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        kind = rng.randrange(3)
        query = {"dryRun": "All"}
        if kind == 0:
            found = [path for path, _ in paths(victim.obj)]
            pointers = [
                "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in rng.choice(found))
                for _ in range(8)
            ]
            pointers += [
                rng.choice(pointers) + "/-",
                "",
                "/",
                rng.choice(pointers) + "/0",
                rng.choice(pointers) + "/" + rng.choice(("a~1b", "~", "-1", "00", "1e1", "é")),
            ]
            steps = [
                {
                    "op": rng.choice(("add", "remove", "replace", "move", "copy", "test")),
                    "path": rng.choice(pointers),
                    "from": rng.choice(pointers),
                    "value": anything(rng),
                }
                for _ in range(rng.randint(1, 5))
            ]
            return self._harmless(self._write("PATCH", victim.path, steps, "JSON patch, dry run", JSON_PATCH, query))
        body = _directed(rng, victim.config()) if kind == 1 else anything(rng)
        type_ = rng.choice((STRATEGIC, MERGE)) if kind == 1 else rng.choice((STRATEGIC, MERGE, APPLY, JSON_PATCH))
        subresource = rng.choice(("", "", "", "/status", "/scale"))
        query["fieldManager"] = "x"
        return self._harmless(self._write("PATCH", victim.path + subresource, body, "patch, dry run", type_, query))

    def odd_read(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        names = (
            "watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "pretty", "includeObject",
            "sendInitialEvents", "timeoutSeconds", "timeout", "allowWatchBookmarks", "kind", "export", "é", "",
        )  # fmt: skip
        values = (
            "", "0", "1", "-1", "true", "false", "x", "Exact", "NotOlderThan", "99999999999999999999", "5", "a=b,c!=d", "a in (b,)", "metadata.name=kept", "metadata.name!=kept",
            "metadata.namespace=x", "status.phase=Running", "1s", "-1s", "1h99999999h", "e30", token({"rv": -1, "start": "/"}), "Metadata", "a,!b,c notin (d),e>5", "\\,=\\=", "é",
        )  # fmt: skip
        pairs = [(rng.choice(names), rng.choice(values)) for _ in range(rng.randrange(5))]
        target = rng.choice(
            (
                victim.path,
                victim.collection,
                victim.collection,
                victim.path.replace("/v1/", "/v1/watch/", 1),
                f"{victim.path}/scale",
                f"{victim.path}/status",
            )
        )
        accept = rng.choice(
            (
                JSON,
                TABLE,
                METADATA,
                METADATA_LIST,
                YAML,
                "*/*",
                "",
                "x/y",
                "application/json;as=Table;v=v9;g=meta.k8s.io",
                "application/vnd.kubernetes.protobuf",
                "application/json;q=x",
                "é" * 99,
            )
        )
        headers = (
            ("accept", accept),
            ("accept-encoding", rng.choice(("gzip", "x", ""))),
            ("user-agent", rng.choice(("", "kubectl/v1.36", "\x00é"))),
        )
        peer = rng.choice((ADMIN, ADMIN, ADMIN, UNPRIVILEGED, None))
        method = rng.choice(("GET", "GET", "GET", "HEAD"))
        return HostileRequest(method, f"{target}?{urlencode(pairs)}", headers, b"", peer, "odd read")

    def raw_query(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        raw = rng.choice(
            (
                "&" * 999,
                "%",
                "%zz",
                "watch=%ff",
                "=" * 50,
                "limit=1;limit=2",
                "a[b]=c",
                "%00=%00",
                "limit=" + "1" * 5000,
                "labelSelector=" + "a," * 5000,
                "fieldSelector=" + "%5c" * 3000,
                "x" * 60_000,
            )
        )
        return HostileRequest("GET", f"{victim.collection}?{raw}", about="raw query")

    def elsewhere(self) -> HostileRequest:
        rng = self._rng
        segments = ("api", "apis", "v1", "apps", "openapi", "v2", "v3", "healthz", "livez", "readyz", "metrics", "version", "federation", "decisions", "..", "%00", "%ff", "é", "x" * 300, "*", "", "openid", ".well-known", "namespaces", "watch", "deployments", "batch", "jobs", "default", "%ed%a0%80")  # fmt: skip
        path = "/" + "/".join(quote(rng.choice(segments), safe="%*.") for _ in range(rng.randrange(6)))
        method = rng.choice(("GET", "GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", ""))
        accept = rng.choice(
            (
                JSON,
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                "x",
                "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            )
        )
        query = {rng.choice(("hash", "timeout", "verbose", "exclude", "kind")): rng.choice(TEXTS[:14]), "dryRun": "All"}
        headers = (("accept", accept), ("content-type", rng.choice((JSON, MERGE, ""))))
        body = to_json(anything(rng)) if method in ("POST", "PUT", "PATCH") else b""
        return HostileRequest(
            method, with_query(path, query), headers, body, rng.choice((ADMIN, UNPRIVILEGED, None)), "elsewhere"
        )

    def review(self) -> HostileRequest:
        """Return a review of permissions or tokens, which is never stored."""
        rng = self._rng
        group, plural = rng.choice((("authorization.k8s.io", "selfsubjectaccessreviews"), ("authorization.k8s.io", "subjectaccessreviews"), ("authorization.k8s.io", "selfsubjectrulesreviews"), ("authorization.k8s.io", "namespaces/kept/localsubjectaccessreviews"), ("authentication.k8s.io", "tokenreviews"), ("authentication.k8s.io", "selfsubjectreviews")))  # fmt: skip
        spec = {
            rng.choice(
                (
                    "resourceAttributes",
                    "nonResourceAttributes",
                    "token",
                    "audiences",
                    "user",
                    "groups",
                    "extra",
                    "uid",
                    "namespace",
                )
            ): anything(rng, 2)
            for _ in range(3)
        }
        spec = rng.choice(
            (
                spec,
                spec,
                {
                    "resourceAttributes": {
                        rng.choice(("verb", "group", "resource", "labelSelector", "fieldSelector", *WORDS)): anything(
                            rng, 2
                        )
                    }
                },
            )
        )
        body = {"apiVersion": f"{group}/v1", "kind": "X", "spec": rng.choice((spec, anything(rng)))}
        return self._harmless(self._write("POST", f"/apis/{group}/v1/{plural}", body, "review"))


def _directed(rng: random.Random, config: Object) -> Any:
    """Return a patch with directives of strategic merge where they make no sense."""
    patch = {
        key: value
        for key, value in mutated(rng, config).items()
        if key in ("metadata", "spec", "template", "data") or rng.random() < 0.1
    }
    holders = [inner for _, inner in paths(patch) if isinstance(inner, dict)] or [patch]
    lists = [inner for _, inner in paths(patch) if isinstance(inner, list)]
    for _ in range(rng.randint(1, 3)):
        directive = rng.choice(("$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers", "$deleteFromPrimitiveList/containers", "$setElementOrder/", "$patch/", "$setElementOrder/ports", "$retainKeys/x"))  # fmt: skip
        value = rng.choice(
            (
                "delete",
                "replace",
                "merge",
                "x",
                None,
                5,
                [],
                ["a"],
                [{"name": "main"}, {"name": "main"}],
                [{}],
                [5, None],
                {"name": "main"},
                anything(rng, 2),
            )
        )
        rng.choice(holders)[directive] = value
    for found in lists:
        if rng.random() < 0.3:
            found.append(
                rng.choice(
                    (
                        {"$patch": "delete"},
                        {"$patch": "replace"},
                        {"$patch": "x"},
                        {"$patch": "delete", "name": "main"},
                        None,
                        5,
                        {"name": "main", "$retainKeys": ["x"]},
                        [],
                    )
                )
            )
    return patch
