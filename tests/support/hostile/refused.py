"""Requests that Kubernetes refuses in any state; each recipe of `Refused` is named after its defect."""

from typing import Any
from urllib.parse import quote

from tests.support.hostile.nonsense import BAD_YAML, anything, broken, to_json, typed_paths, with_value, wrong_for
from tests.support.hostile.requests import JSON, YAML, Sender, token, with_query
from tests.support.hostile.world import UNPRIVILEGED, HostileRequest
from tests.support.rest import APPLY, JSON_PATCH, MERGE, METADATA_LIST, TABLE


class Refused(Sender):
    """Recipes of requests that must be refused."""

    def wrong_type(self) -> HostileRequest:
        victim = self._victim()
        path, value = self._rng.choice(typed_paths(victim.obj))
        wrong = wrong_for(self._rng, path, value)
        about = f"{'.'.join(map(str, path))} is {wrong!r:.40}"
        kind = self._rng.randrange(4)
        if kind == 0:
            pointer = "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
            return self._write(
                "PATCH", victim.path, [{"op": "replace", "path": pointer, "value": wrong}], about, JSON_PATCH
            )
        if kind == 1 and not any(isinstance(step, int) for step in path):
            body: Any = wrong
            for step in reversed(path):
                body = {step: body}
            # A strategic patch may merge a list; only a merge patch always replaces it.
            return self._write("PATCH", victim.path, body, about, MERGE)
        body = with_value(victim.obj, path, wrong)
        if kind == 2:
            return self._write("PUT", victim.path, body, about)
        body = with_value(body, ("metadata", "name"), "scratch-new") if path[:1] != ("metadata",) else body
        if path[:1] != ("metadata",):
            del body["metadata"]["resourceVersion"]
        return self._write("POST", victim.collection, body, about)

    def wrong_kind(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        field = rng.choice(("kind", "apiVersion"))
        body = victim.obj | {field: rng.choice(("Nothing", "v9", "apps/v1/x", "a/b", "x" * 300, 5, {}, []))}
        if rng.random() < 0.3:
            query = {"fieldManager": "x", "force": "true"}
            return self._write(
                "PATCH", victim.path, {**victim.config(), field: body[field]}, "wrong kind", APPLY, query
            )
        return self._write("PUT", victim.path, body, f"{field} is {body[field]!r:.30}")

    def no_json(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        body = broken(rng, to_json(victim.obj))
        method, target, type_ = rng.choice(
            [
                ("PUT", victim.path, JSON),
                ("POST", victim.collection, JSON),
                *[("PATCH", victim.path, t) for t in (MERGE, JSON_PATCH)],
            ]
        )
        if body == b"[]" and type_ == JSON_PATCH:
            body = b"[5]"
        elif body == b"[{}]":
            body = b'["x"]'
        return self._write(method, target, body, "not JSON", type_)

    def bad_yaml(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        body = rng.choice(BAD_YAML)
        if rng.random() < 0.5:
            return self._write("PATCH", victim.path, body, "bad YAML", APPLY, {"fieldManager": "x", "force": "true"})
        return self._write(*rng.choice([("PUT", victim.path), ("POST", victim.collection)]), body, "bad YAML", YAML)

    def wrong_media_type(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        types = (
            "text/plain",
            "application/xml",
            "multipart/form-data",
            "application/json-patch",
            "é",
            "*",
            "application/cbor",
        )
        method, target = rng.choice([("PUT", victim.path), ("POST", victim.collection), ("PATCH", victim.path)])
        return self._write(method, target, victim.obj, "wrong media type", rng.choice(types))

    def wrong_encoding(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        body = rng.choice(
            (
                b"\x1f\x8b" + rng.randbytes(40),
                to_json(victim.obj).decode().encode("utf-16"),
                b"\x78\x9c" + rng.randbytes(9),
            )
        )
        request = self._write("PUT", victim.path, body, "wrong encoding")
        encoding = rng.choice(("gzip", "deflate", "br", "identity, gzip", "\x00"))
        return HostileRequest(
            "PUT",
            request.target,
            (*request.headers, ("content-encoding", encoding)),
            body,
            about=request.about,
            must_fail=True,
        )

    def other_name(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        field = rng.choice(("name", "namespace", "uid"))
        wrong = rng.choice(("other", "x" * 300, "A_B", "a/b", "\x00"))
        metadata = {**victim.obj["metadata"], field: wrong}
        if field == "namespace" and "namespace" not in victim.obj["metadata"]:
            metadata["name"] = "other"
        body = {**victim.obj, "metadata": metadata}
        if rng.random() < 0.3 and field != "uid":
            return self._write(
                "PATCH", victim.path, {"metadata": {"name": "other", field: wrong}}, f"another {field}", MERGE
            )
        return self._write("PUT", victim.path, body, f"another {field}")

    def bad_name(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        # Names of RBAC objects and Events may be almost anything.
        bad = ("x" * 254, "a/b", "..", ".", "a%b", "\x00", "é", "a b", "a\n", "", 5, None, ["a"], {"a": 1})
        config = victim.config()
        lenient = "/rbac." in victim.collection or victim.collection.endswith("/events")
        name = rng.choice(("a/b", "..", ".", "a%b", "", 5, None, ["a"]) if lenient else bad)
        body = {**config, "metadata": {**config["metadata"], "name": name}}
        return self._write("POST", victim.collection, body, f"named {body['metadata']['name']!r:.30}")

    def bad_metadata(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        field, wrong = rng.choice(
            [
                ("labels", {"a": "x" * 64}), ("labels", {"A B": "x"}), ("labels", {"a/b/c": "x"}), ("labels", {"": "x"}), ("labels", {"a": "é"}),
                ("annotations", {"a b": "x"}), ("annotations", {"a": "x" * 300_000}), ("finalizers", ["a b"]), ("finalizers", [""]),
                ("ownerReferences", [{}]), ("ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]), ("ownerReferences", {"a": 1}),
                ("generation", "x"), ("creationTimestamp", "yesterday"), ("deletionGracePeriodSeconds", "soon"), ("resourceVersion", "1"),
                ("resourceVersion", "9" * 30), ("resourceVersion", "x"), ("uid", "another"), ("managedFields", "x"), ("managedFields", [5]),
            ]
        )  # fmt: skip
        metadata = {**victim.obj["metadata"], field: wrong}
        if rng.random() < 0.4:
            return self._write(
                "PATCH", victim.path, {"metadata": {field: wrong}}, f"metadata.{field} {wrong!r:.30}", MERGE
            )
        return self._write("PUT", victim.path, {**victim.obj, "metadata": metadata}, f"metadata.{field} {wrong!r:.30}")

    def bad_write_option(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        name, value = rng.choice(
            [
                ("dryRun", "x"), ("dryRun", "all"), ("fieldValidation", "strict"), ("fieldValidation", "\x00"), ("fieldManager", "x" * 129),
                ("fieldManager", "\x07"), ("fieldManager", "a\u202eb"), ("dryRun", "All,All"),
            ]
        )  # fmt: skip
        body = victim.obj
        method, target, type_ = rng.choice(
            [("PUT", victim.path, JSON), ("PATCH", victim.path, MERGE), ("POST", victim.collection, JSON)]
        )
        return self._write(method, target, body, f"{name}={value!a:.20}", type_, {name: value})

    def strictly_unknown(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        config = {**victim.config(), "nobodyKnowsThis": anything(rng, 1)}
        body = to_json(config)
        if rng.random() < 0.5:
            body = to_json(victim.config())[:-1] + b',"kind":"Again"}'
        config_type = rng.choice((JSON, YAML))
        return self._write("PUT", victim.path, body, "unknown field", config_type, {"fieldValidation": "Strict"})

    def bad_json_patch(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        name = {"op": "test", "path": "/metadata/name", "value": "somebody else"}
        bad: list[Any] = [
            {"op": "remove", "path": "/nothing/here"}, {"op": "replace", "path": "/spec/no/way", "value": 1}, {"op": "x", "path": "/kind"},
            {"op": "add", "path": "kind", "value": 1}, {"op": "add", "path": "/metadata/finalizers/99", "value": "a/b"}, {"op": "add"},
            {"op": "move", "from": "/metadata", "path": "/metadata/annotations/a"}, {"op": "move", "from": "/nothing", "path": "/x"},
            {"op": "copy", "from": "/no/such", "path": "/metadata/labels"}, {"op": "copy", "path": "/x"}, {"op": "add", "path": "/a~2b/c", "value": 1},
            {"op": "test", "path": "/kind", "value": {"a": 1}}, {"op": "remove", "path": ""}, {"op": "replace", "path": "", "value": 5},
            {"op": "replace", "path": "", "value": None}, {"op": "remove", "path": "/metadata"}, {"op": "replace", "path": "/kind", "value": "X"},
            {"op": "add", "path": "/metadata/name/-", "value": 1}, {"op": "add", "path": "/metadata/name", "value": "x"}, {"op": 5, "path": "/a"},
            {"op": "replace", "path": 5, "value": 1}, {"op": "remove", "path": ["a"]}, {"op": "copy", "from": {}, "path": "/a"}, 5, None, "x", [],
            {"op": "add", "path": "/metadata/managedFields/-", "value": 5}, {"op": "replace", "path": "/metadata/uid", "value": "x"},
        ]  # fmt: skip
        steps = [rng.choice(bad)]
        if rng.random() < 0.3:
            steps = [{"op": "add", "path": "/metadata/labels", "value": {"changed": "yes"}}, *steps]
        if rng.random() < 0.2:
            steps = [{"op": "copy", "from": "", "path": "/metadata/annotations"}] * rng.choice((3, 40)) + [name]
        return self._write("PATCH", victim.path, steps, f"JSON patch {steps[-1]!r:.60}", JSON_PATCH)

    def bad_apply(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        config, query, about = victim.config(), {"fieldManager": "x", "force": "true"}, "bad apply"
        match rng.randrange(6):
            case 0:
                query = {"force": "true"}
            case 1:
                query = {"fieldManager": rng.choice(("x" * 200, "\x00", "\n"))}
            case 2:
                config["metadata"]["name"] = "other"
            case 3:
                path, value = rng.choice(typed_paths(config))
                config = with_value(config, path, wrong_for(rng, path, value))
                about = f"applied {'.'.join(map(str, path))}"
            case 4:
                config["metadata"]["resourceVersion"] = "1"
            case _:
                config["metadata"]["managedFields"] = anything(rng) or [{}]
        return self._write("PATCH", victim.path, config, about, APPLY, query)

    def bad_delete(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        body, query = rng.choice(
            [
                ({"preconditions": {"uid": "another"}}, {}), ({"preconditions": {"resourceVersion": "1"}}, {}), ({"preconditions": 5}, {}),
                ({"preconditions": {"uid": 5}}, {}), ({"propagationPolicy": "x"}, {}), ({"propagationPolicy": ["Orphan"]}, {}), ({"dryRun": ["x"]}, {}),
                ({"dryRun": "All"}, {}), ({"dryRun": [5]}, {}), ({"dryRun": [{}]}, {}), ({"gracePeriodSeconds": "x"}, {}), ({"gracePeriodSeconds": 1.5}, {}), ({"kind": "Pod"}, {}), ([], {}),
                ({"orphanDependents": "x"}, {}), ({"orphanDependents": True, "propagationPolicy": "Orphan"}, {}), (b"{", {}), (b"\xff", {}),
                (b"", {"propagationPolicy": "x"}), (b"", {"gracePeriodSeconds": "x"}), (b"", {"dryRun": "x"}), (b"", {"gracePeriodSeconds": "9" * 30}),
                ({"kind": 5}, {}), (b"[" * 5000, {}), ({"preconditions": {"uid": ["x"]}}, {}),
            ]
        )  # fmt: skip
        target = victim.path if rng.random() < 0.6 else victim.collection
        return self._write("DELETE", target, body, f"DELETE with {body!r:.40} {query}", JSON, query)

    def bad_selection(self) -> HostileRequest:
        """Return a deletion or list with an impossible selector."""
        victim, rng = self._victim(), self._rng
        query = rng.choice(
            [
                {"labelSelector": "a in (b"}, {"labelSelector": "="}, {"labelSelector": "a b"}, {"labelSelector": "!"}, {"labelSelector": "a > x"},
                {"labelSelector": "x" * 300}, {"labelSelector": "a=\x00"}, {"labelSelector": "a notin"}, {"labelSelector": "(" * 5000},
                {"fieldSelector": "spec.nothing=1"}, {"fieldSelector": "metadata.name"}, {"fieldSelector": "a" * 9000}, {"fieldSelector": "=x"},
                {"limit": "x"}, {"limit": "1.5"}, {"limit": "9" * 30}, {"timeoutSeconds": "x"},
                {"continue": "x"}, {"continue": "e30"}, {"continue": "\xff"}, {"continue": token({"rv": "x", "start": []})},
                {"continue": token({"v": "meta.k8s.io/v1", "rv": 5, "start": "/core/secrets/"})} if "/secrets" not in victim.collection else {"limit": "x"},
                {"continue": token({"rv": 10**60, "start": "/"})}, {"continue": token([5])}, {"continue": "A" * 9001},
                {"resourceVersion": "x"}, {"resourceVersion": "-1"}, {"resourceVersion": "1.0"}, {"resourceVersion": "\u0663"},
                {"resourceVersion": "0", "resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "x"},
                {"sendInitialEvents": "true"}, {"timeout": "soon"},
            ]
        )  # fmt: skip
        method = rng.choice(("GET", "DELETE"))
        accept = rng.choice((JSON, TABLE, METADATA_LIST))
        headers = (("accept", accept),)
        return HostileRequest(
            method, with_query(victim.collection, query), headers, about=f"{query!r:.60}", must_fail=True
        )

    def bad_subresource(self) -> HostileRequest:
        rng = self._rng
        name = rng.choice(("scale", "scale", "status", "eviction", "binding", "token", "nothing"))
        if name == "nothing":
            victim = self._victim()
            name = rng.choice(("nothing", "log", "exec", "proxy", "..", "%00", "status/status", "é", "x" * 500))
            return self._write(
                rng.choice(("GET", "PUT", "POST", "PATCH", "DELETE")),
                f"{victim.path}/{quote(name, safe='%/')}",
                {},
                "no such subresource",
                MERGE,
            )
        victim = self._victim(name)
        path = f"{victim.path}/{name}"
        if name == "scale":
            replicas = rng.choice(("x", -1, 1.5, [], {}, True, 2**40, "1"))
            body: Any = {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {"name": victim.obj["metadata"]["name"]},
                "spec": {"replicas": replicas},
            }
            method, type_ = rng.choice((("PUT", JSON), ("PATCH", MERGE)))
            body = rng.choice((body, {**body, "spec": "x"}, {**body, "metadata": 5}, {**body, "spec": [1]}))
            return self._write(method, path, body, f"scale {body['spec']!r}", type_)
        if name == "status":
            body = {**victim.obj, "status": rng.choice(("x", 5, [1], True))}
            return self._write("PUT", path, body, "bad status")
        if name == "eviction":
            options = rng.choice(("x", 5, [1], {"dryRun": 5}, {"dryRun": ["x"]}, {"preconditions": "x"}, {"preconditions": {"uid": "another"}}, {"preconditions": {"uid": 5}}, {"gracePeriodSeconds": "x"}, {"propagationPolicy": "x"}, {"propagationPolicy": 5}))  # fmt: skip
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "kept"},
                "deleteOptions": options,
            }
            return self._write("POST", path, body, f"eviction {options!r}")
        if name == "binding":
            target = rng.choice((None, "x", [], {}, {"name": ""}, {"name": 5}, {"name": ["a"]}, {"name": {"a": 1}}))
            return self._write(
                "POST", path, {"apiVersion": "v1", "kind": "Binding", "target": target}, f"binding to {target!r}"
            )
        spec = rng.choice(("x", [1], {"audiences": "x"}, {"audiences": [5]}, {"expirationSeconds": "x"}, {"expirationSeconds": 1}, {"expirationSeconds": 2**40}, {"boundObjectRef": "x"}, {"boundObjectRef": {"kind": "Pod", "name": "no-such"}}, {"boundObjectRef": {"kind": 5}}))  # fmt: skip
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self._write("POST", path, body, f"token {spec!r}")

    def no_right(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        method, target = rng.choice(
            [("PUT", victim.path), ("POST", victim.collection), ("DELETE", victim.path), ("DELETE", victim.collection)]
        )
        who = rng.randrange(4)
        headers: tuple[tuple[str, str], ...] = (("content-type", JSON),)
        if who == 0:
            headers += (("impersonate-user", rng.choice(("admin", "system:serviceaccount:a:b", "", "\x00", "é"))),)
            headers += (("impersonate-group", "system:masters"),)
        elif who == 1:
            words = (
                "Bearer x",
                "Bearer ",
                "Basic YTpi",
                "Bearer " + "x" * 9000,
                "Bearer a.b.c",
                "\x00",
                "Bearer eyJhbGciOiJub25lIn0.e30.",
                "bearer é",
            )
            headers += (("authorization", rng.choice(words)),)
        elif who == 2:
            headers += ((rng.choice(("impersonate-uid", "impersonate-group", "impersonate-extra-a")), "x"),)
            return HostileRequest(
                method, target, headers, to_json(victim.obj), UNPRIVILEGED, "half an impersonation", must_fail=True
            )
        peer = UNPRIVILEGED if who != 1 else None
        return HostileRequest(
            method, target, headers, to_json(victim.obj), peer, "without the right to", must_fail=True
        )

    def odd_path(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        base = victim.path
        odd = rng.choice(
            (
                "/..", "/%2e%2e/x/y", "%2f..%2fx", "%00", "//", "/status/status", "/%ff%fe", "x" * 2000, ";a=b", "/%c3%a9",
                "%252f", "/*", "/scale/../..", "%5c", "/%20", "%0a",
            )
        )  # fmt: skip
        root = rng.choice(
            (
                base + odd,
                odd + base if odd.startswith("/") else "/" + odd + base,
                base.replace("/v1/", "/v9/"),
                "/apis" + base,
            )
        )
        method = rng.choice(("PUT", "POST", "PATCH", "DELETE"))
        if root == base + "//":
            root = base + "//x"
        return self._write(method, root, {"metadata": {"name": "x\x00"}}, "odd path", MERGE)

    def odd_verb(self) -> HostileRequest:
        victim, rng = self._victim(), self._rng
        method = rng.choice(("TRACE", "CONNECT", "OPTIONS", "LINK", "get", "PROPFIND", "X" * 100))
        return HostileRequest(method, victim.path, (), to_json(victim.obj), about="odd verb", must_fail=True)

    def bad_definition(self) -> HostileRequest:
        """A CustomResourceDefinition whose schema cannot be served."""
        rng = self._rng
        group = f"g{rng.randrange(9)}.example.com"
        schema = rng.choice(
            (
                {"type": "x"}, {}, {"type": "object", "properties": "x"}, {"type": "object", "properties": {"a": 5}}, {"$ref": "#/a"}, {"type": ["object"]},
                {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, {"type": "object", "additionalProperties": {}, "properties": {"a": {}}},
                {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, {"type": "object", "x-kubernetes-validations": [{"rule": "self..a"}]},
                {"type": "object", "x-kubernetes-validations": [{"rule": 5}]}, {"type": "array"}, {"type": "object", "properties": {"a": {"type": "array"}}},
                {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}}},
                {"type": "object", "properties": {"metadata": {"type": "string"}}}, "x", 5, [1],
            )
        )  # fmt: skip
        spec: Any = {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        }  # fmt: skip
        if rng.random() < 0.4:
            valid = {"type": "object"}
            spec["versions"][0]["schema"]["openAPIV3Schema"] = valid
            path, wrong = rng.choice(
                [
                    (("scope",), "x"), (("names", "plural"), "A B"), (("versions",), []), (("versions", 0, "storage"), False), (("group",), "x"), (("names",), 5),
                    (("versions", 0, "name"), "é"), (("names", "kind"), ""), (("names", "shortNames"), ["A B"]), (("versions", 0, "schema"), None), (("group",), ""),
                ]
            )  # fmt: skip
            spec = with_value(spec, path, wrong)
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{group}"},
            "spec": spec,
        }
        return self._write(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body, f"definition with {schema!r:.60}"
        )
