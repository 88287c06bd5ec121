"""Odd requests: paths, verbs, query parameters, headers, bodies, patches, options and subresources."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import orjson
from tests.kubernetes.differences.metadata import UID
from tests.kubernetes.differences.requests import NAMESPACE, Request, Target, key, request, within
from tests.support.rest import APPLY, JSON_PATCH, MERGE, METADATA, METADATA_LIST, STRATEGIC, TABLE, Object

_DRY: Final = {"dryRun": "All"}
YAML: Final = "application/yaml"
FUTURE: Final = "99999999999"
_ACCEPTED: Final = (
    *("", "*/*", "application/*", "text/plain", "application/yaml", "application/xml", "application/json;q=0.5, */*"),
    *(TABLE, METADATA, METADATA_LIST, "application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
    *("application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Unknown;v=v1;g=meta.k8s.io"),
    *("application/json;stream=watch", "application/json;as=PartialObjectMetadata;v=v1", "image/png, text/html;q=0.1"),
)
_LISTS: Final[tuple[dict[str, str], ...]] = (
    *({"limit": value} for value in ("0", "1", "-1", "abc", "99999999999999999999")),
    *(
        {"continue": value}
        for value in ("x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9")
    ),
    *({"resourceVersion": value} for value in ("0", "1", "-1", "abc", "1.5", FUTURE, "18446744073709551616", "00")),
    *(
        {"resourceVersion": revision, "resourceVersionMatch": match}
        for revision, match in product(("", "0", "1", FUTURE), ("Exact", "NotOlderThan", "Newest"))
    ),
    *({"limit": "1", "resourceVersion": revision, "resourceVersionMatch": "Exact"} for revision in ("0", FUTURE)),
    *(
        {"labelSelector": value}
        for value in ("a=b", "a in (b", "a==", "!a", "=", "a,,b", "no such!", "a>1", "a notin ()")
    ),
    *(
        {"fieldSelector": value}
        for value in ("metadata.name=x", "metadata.namespace!=corpus", "spec.x=1", "metadata.name")
    ),
    *(
        {"fieldSelector": value}
        for value in ("status.phase=Running", "spec.nodeName=", "metadata.name=a,metadata.name=b")
    ),
    *({"timeoutSeconds": value} for value in ("-1", "0", "1", "abc")),
    *({"sendInitialEvents": value} for value in ("true", "false")),
    *({"includeObject": value} for value in ("None", "Metadata", "Object", "All")),
    {"pretty": "true"},
    {"unknownParameter": "1"},
    {"allowWatchBookmarks": "true"},
)
_WATCHES: Final[tuple[dict[str, str], ...]] = (
    *({"resourceVersion": value} for value in ("", "0", "abc", "-1", FUTURE)),
    *({"allowWatchBookmarks": value} for value in ("true", "false", "abc")),
    *(
        {"sendInitialEvents": initial, "resourceVersion": revision, **match, **bookmarks}
        for initial, revision, match, bookmarks in product(
            ("true", "false"),
            ("", "0", FUTURE),
            ({}, {"resourceVersionMatch": "NotOlderThan"}, {"resourceVersionMatch": "Exact"}),
            ({}, {"allowWatchBookmarks": "true"}),
        )
    ),
    {"resourceVersionMatch": "NotOlderThan"},
    {"labelSelector": "a in (b"},
    {"fieldSelector": "spec.x=1"},
    {"fieldSelector": "metadata.name=absent", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
    {"limit": "1"},
    {"continue": "x", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"},
)
_WRITES: Final[tuple[dict[str, str], ...]] = (
    *({"dryRun": value} for value in ("", "All", "all", "None", "All,All")),
    *({"fieldManager": value, **_DRY} for value in ("", "a" * 128, "a" * 129, "a\nb", "é", "x/y")),
    *({"fieldValidation": value, **_DRY} for value in ("", "Ignore", "Warn", "Strict", "strict")),
    *({"force": value, **_DRY} for value in ("true", "false", "abc")),
    *({"pretty": value, **_DRY} for value in ("true", "1")),
    *({"timeout": value, **_DRY} for value in ("1s", "abc", "-1s", "0", "1h")),
    {"dryRun": "no", "fieldValidation": "no", "fieldManager": "\n"},
    {"unknownParameter": "1", **_DRY},
)
_DELETIONS: Final[tuple[Object, ...]] = (
    *({"propagationPolicy": value} for value in ("Background", "Foreground", "Orphan", "No", "", 5)),
    *({"orphanDependents": value} for value in (True, False, "yes")),
    {"orphanDependents": True, "propagationPolicy": "Orphan"},
    *({"gracePeriodSeconds": value} for value in (0, 1, -1, "1", 1.5)),
    *({"preconditions": {"uid": value}} for value in (UID, "", 5)),
    *({"preconditions": {"resourceVersion": value}} for value in ("1", "abc", 5)),
    *({"dryRun": value} for value in (["All"], ["No"], [], "All")),
    *({"kind": value} for value in ("DeleteOptions", "Pod", "", 5)),
    *(
        {"kind": "DeleteOptions", "apiVersion": value}
        for value in ("v1", "meta.k8s.io/v1", "apps/v1", "nothing/v1", "")
    ),
    {"unknownField": 1},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True, "gracePeriodSeconds": 0},
)
"""DeleteOptions; a dry run unless they say otherwise."""
_BODIES: Final = (
    b"",
    b"null",
    b"[]",
    b"5",
    b'"x"',
    b"{",
    b"{}",
    b"not json",
    b"\xff\xfe",
    b"{}{}",
    b'{"kind":5}',
    b"\n",
)
_TYPES: Final = ("", "*/*", "text/plain", "application/json; charset=utf-8", "application/xml", MERGE, YAML, "nonsense")
_PATCHES: Final[tuple[tuple[str, Any], ...]] = (
    *((type_, body) for type_, body in product((MERGE, STRATEGIC, JSON_PATCH, APPLY), _BODIES)),
    *(
        (JSON_PATCH, [{"op": op, "path": "/metadata/labels/x", "value": "y"}])
        for op in ("add", "replace", "test", "no", "")
    ),
    *((JSON_PATCH, [{"op": "remove", "path": path}]) for path in ("/metadata/labels", "/metadata/x", "x", "", "/")),
    *((JSON_PATCH, [{"op": op, "path": "/metadata/annotations", "from": "/metadata/x"}]) for op in ("copy", "move")),
    (JSON_PATCH, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]),
    (JSON_PATCH, [{"op": "add", "path": "/metadata/annotations"}]),
    (JSON_PATCH, [{"path": "/metadata/annotations"}]),
    (JSON_PATCH, [{"op": "add"}]),
    (JSON_PATCH, {"op": "add", "path": "/metadata/annotations", "value": {}}),
    *(
        (type_, {"metadata": {"resourceVersion": value}})
        for type_, value in product((MERGE, STRATEGIC), ("1", "", "abc"))
    ),
    *((type_, {"metadata": {"name": value}}) for type_, value in product((MERGE, STRATEGIC), ("other", "", None))),
    *((type_, {"metadata": {"uid": value}}) for type_, value in product((MERGE, STRATEGIC), (UID, "", None))),
    *((type_, {"metadata": None}) for type_ in (MERGE, STRATEGIC)),
    *((type_, {"kind": "Other"}) for type_ in (MERGE, STRATEGIC)),
    *((type_, {"apiVersion": "other/v1"}) for type_ in (MERGE, STRATEGIC)),
    *((type_, {"unknownField": 1}) for type_ in (MERGE, STRATEGIC)),
    (STRATEGIC, {"$patch": "no"}),
    (STRATEGIC, {"$patch": "delete"}),
    (STRATEGIC, {"$patch": "replace", "metadata": {"name": "x"}}),
    (STRATEGIC, {"metadata": {"$patch": "delete"}}),
    (STRATEGIC, {"metadata": {"$retainKeys": ["labels"], "labels": {"a": "b"}}}),
    (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
    (STRATEGIC, {"metadata": {"$setElementOrder/finalizers": ["a"]}}),
    (STRATEGIC, {"metadata": {"finalizers": 5}}),
)
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "COPY")
_PATHS: Final = (
    *("/", "/api", "/apis", "/api/", "/apis/", "/api/v1", "/api/v2", "/apis/apps", "/apis/apps/v1", "/apis/apps/v9"),
    *("/apis/nothing", "/apis/nothing/v1", "/apis/nothing/v1/things", "/api/v1/nothing", "/apis/apps/v1/nothing"),
    *("/api/v1/pods/x", "/api/v1/namespaces/corpus/nodes", "/api/v1/namespaces/corpus/nodes/x"),
    *("/api/v1/namespaces/absent/pods", "/api/v1/namespaces/absent/pods/x", "/api/v1/namespaces//pods"),
    *(
        "/api/v1/namespaces/corpus/pods/",
        "/api/v1/namespaces/corpus/pods/x/y",
        "/api/v1/namespaces/corpus/pods/x/status/y",
    ),
    *("/api/v1/namespaces/corpus/configmaps/x/status", "/api/v1/nodes/x/status", "/api/v1/nodes/x/scale"),
    *(
        "/apis/apps/v1/namespaces/corpus/deployments/x/scale",
        "/apis/apps/v1/deployments/scale",
        "/version",
        "/version/",
    ),
    *("/healthz", "/livez", "/readyz", "/healthz/ping", "/healthz/nothing", "/metrics/nothing", "/nothing", "/openapi"),
    *("/api/v1/watch/pods", "/api/v1/watch/namespaces/corpus/pods", "/api/v1/namespaces/corpus/pods/x/eviction"),
    *("/api/v1/namespaces/corpus/pods/x/binding", "/api/v1/namespaces/corpus/bindings", "/api/v1/bindings"),
    *("/api/v1/namespaces/corpus/serviceaccounts/x/token", "/api/v1/namespaces/corpus/finalize"),
    *(
        "/api/v1//pods",
        "//api/v1/pods",
        "/api/v1/namespaces/corpus/pods/%2e%2e",
        "/api/v1/namespaces/corpus/pods/a%2fb",
    ),
    *("/api/v1/namespaces/corpus/pods/%00", "/api/v1/namespaces/corpus/pods/a%20b", "/API/v1/pods", "/openapi/v4"),
    *("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews"),
    *("/apis/policy/v1beta1/namespaces/corpus/poddisruptionbudgets", "/apis/extensions/v1beta1/ingresses"),
)
_SUBRESOURCES: Final = ("status", "scale", "nothing", "eviction", "binding", "finalize", "token", "approval", "resize")
USER: Final = {"impersonate-user": "nobody"}


def path_requests() -> Iterator[Request]:
    """Yield every method on odd paths, as the administrator and as a user without rights."""
    for path, method in product(_PATHS, _METHODS):
        body = {} if method in {"POST", "PUT", "PATCH"} else None
        type_ = MERGE if method == "PATCH" else "application/json"
        yield request(f"paths: {method} {path}", method, path, body, type_=type_)
        yield request(f"paths: {method} {path} as nobody", method, path, body, type_=type_, headers=USER)


def collection_requests(kind: Target, obj: Object) -> Iterator[Request]:
    """Yield odd reads of one kind's collection; a field selects one object, so that lists are short."""
    name, of = obj["metadata"].get("name", "absent"), f"{key(obj)}"
    one = {"fieldSelector": f"metadata.name={name}"}
    for query in _LISTS:
        yield request(f"lists: {of}: {_text(query)}", "GET", kind.root, **{**one, **query})
        yield request(f"lists: {of}: DELETE {_text(query)}", "DELETE", kind.root, **{**one, **query, **_DRY})
    for accept in _ACCEPTED:
        headers = {"accept": accept}
        yield request(f"lists: {of}: accept {accept}", "GET", kind.root, headers=headers, **one)
        yield request(f"lists: {of}: GET accept {accept}", "GET", f"{kind.root}/{name}", headers=headers)
        yield request(f"lists: {of}: absent accept {accept}", "GET", f"{kind.root}/absent", headers=headers)
    for revision in ("", "0", "1", "-1", "abc", "1.5", "18446744073709551616", FUTURE):
        yield request(f"lists: {of}: GET at {revision}", "GET", f"{kind.root}/{name}", resourceVersion=revision)
    yield request(f"lists: {of}: GET pretty", "GET", f"{kind.root}/{name}", pretty="true")
    for value in ("1", "true", "false", "0", "abc", ""):
        yield request(f"watches: {of}: watch={value}", "GET", kind.root, watch=value, timeoutSeconds="1", **one)
    for query in _WATCHES:
        every = {"watch": "1", "timeoutSeconds": "1", **one}
        yield request(f"watches: {of}: {_text(query)}", "GET", kind.root, **{**every, **query})
    for value in ("-1", "abc", "1.5"):
        yield request(f"watches: {of}: timeout {value}", "GET", kind.root, watch="1", timeoutSeconds=value, **one)
    for accept in _ACCEPTED:
        yield request(
            f"watches: {of}: accept {accept}", "GET", kind.root, headers={"accept": accept}, watch="1",
            timeoutSeconds="1", **one,
        )  # fmt: skip


def write_requests(kind: Target, obj: Object, live: Object) -> Iterator[Request]:
    """Yield odd writes of one stored object; all are dry runs, unless they must be refused."""
    of, url = key(obj), f"{kind.root}/{live['metadata']['name']}"
    new = within(obj, kind)
    other = {**new, "metadata": {**new["metadata"], "name": "other"}}
    for query in _WRITES:
        text = _text(query)
        if query.get("dryRun") or query.get("fieldValidation"):
            yield request(f"writes: {of}: POST {text}", "POST", kind.root, other, **query)
        yield request(f"writes: {of}: taken {text}", "POST", kind.root, new, **query)
        yield request(f"writes: {of}: PUT {text}", "PUT", url, new, **{**_DRY, **query})
        for type_ in (MERGE, STRATEGIC, APPLY):
            short = type_.partition("/")[2]
            body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"labels": {"a": "b"}}}
            yield request(f"writes: {of}: {short} {text}", "PATCH", url, body, type_=type_, **{**_DRY, **query})
    for body, type_ in product(_BODIES, ("application/json", YAML)):
        yield request(f"writes: {of}: POST {type_} {body!r}", "POST", kind.root, body, type_=type_, **_DRY)
        yield request(f"writes: {of}: PUT {type_} {body!r}", "PUT", url, body, type_=type_, **_DRY)
    for type_ in _TYPES:
        for method, at in (("POST", kind.root), ("PUT", url), ("PATCH", url)):
            yield request(
                f"writes: {of}: {method} of type {type_}", method, at, orjson.dumps(other), type_=type_, **_DRY
            )
        options = orjson.dumps({"dryRun": ["All"]})
        yield request(f"writes: {of}: DELETE of type {type_}", "DELETE", url, options, type_=type_)
    for accept in _ACCEPTED:
        yield request(
            f"writes: {of}: POST accept {accept}", "POST", kind.root, other, headers={"accept": accept}, **_DRY
        )
        yield request(f"writes: {of}: DELETE accept {accept}", "DELETE", url, headers={"accept": accept}, **_DRY)
    for type_, patch in _PATCHES:
        short, text = type_.partition("/")[2], patch if isinstance(patch, bytes) else orjson.dumps(patch).decode()
        yield request(f"writes: {of}: {short} {text!r}", "PATCH", url, patch, type_=type_, fieldManager="a", **_DRY)
        yield request(
            f"writes: {of}: absent {short} {text!r}", "PATCH", f"{kind.root}/absent", patch, type_=type_, **_DRY
        )
    for options in _DELETIONS:
        body = {"dryRun": ["All"], **options}
        if body["dryRun"]:
            yield request(f"writes: {of}: DELETE {options!r}", "DELETE", url, body, **_DRY)
        yield request(f"writes: {of}: DELETE absent {options!r}", "DELETE", f"{kind.root}/absent", body, **_DRY)
    for content in _BODIES:
        yield request(f"writes: {of}: DELETE absent {content!r}", "DELETE", f"{kind.root}/absent", content, **_DRY)
    for query in ({"propagationPolicy": "No"}, {"gracePeriodSeconds": "abc"}, {"orphanDependents": "x"}, {"uid": "x"}):
        yield request(f"writes: {of}: DELETE {_text(query)}", "DELETE", url, **{**_DRY, **query})


def identity_requests(kind: Target, obj: Object, live: Object) -> Iterator[Request]:
    """Yield writes whose identity, version or revision is not the one of the path or of the stored object."""
    of, new, url = key(obj), within(obj, kind), f"{kind.root}/{live['metadata']['name']}"
    metadata = new["metadata"]
    wrong: dict[str, Object] = {
        "kind": {**new, "kind": "Other"},
        "no kind": {name: value for name, value in new.items() if name != "kind"},
        "version": {**new, "apiVersion": "v9"},
        "group": {**new, "apiVersion": "other.example.com/v1"},
        "no version": {name: value for name, value in new.items() if name != "apiVersion"},
        "no metadata": {name: value for name, value in new.items() if name != "metadata"},
        "metadata null": {**new, "metadata": None},
        "metadata list": {**new, "metadata": []},
        "namespace": {**new, "metadata": {**metadata, "namespace": "other"}},
        "name": {**new, "metadata": {**metadata, "name": "other"}},
        "old revision": {**new, "metadata": {**metadata, "resourceVersion": "1"}},
        "revision text": {**new, "metadata": {**metadata, "resourceVersion": "abc"}},
        "future revision": {**new, "metadata": {**metadata, "resourceVersion": FUTURE}},
        "live revision": {**new, "metadata": {**metadata, "resourceVersion": live["metadata"]["resourceVersion"]}},
        "other uid": {**new, "metadata": {**metadata, "uid": UID}},
        "live uid": {**new, "metadata": {**metadata, "uid": live["metadata"]["uid"]}},
        "live": live,
    }
    for change, body in wrong.items():
        yield request(f"identity: {of}: POST {change}", "POST", kind.root, body, **_DRY)
        yield request(f"identity: {of}: PUT {change}", "PUT", url, body, **_DRY)
        yield request(f"identity: {of}: PUT absent {change}", "PUT", f"{kind.root}/absent", body, **_DRY)
        absent = {**body, "metadata": {**body["metadata"], "name": "absent"}} if body.get("metadata") else body
        yield request(f"identity: {of}: PUT of absent {change}", "PUT", f"{kind.root}/absent", absent, **_DRY)
        yield request(f"identity: {of}: apply {change}", "PATCH", url, body, type_=APPLY, fieldManager="a", **_DRY)
        yield request(
            f"identity: {of}: apply of absent {change}", "PATCH", f"{kind.root}/absent", absent, type_=APPLY,
            fieldManager="a", **_DRY,
        )  # fmt: skip


def part_requests(kind: Target, obj: Object, live: Object) -> Iterator[Request]:
    """Yield every method on subresources, of a stored and of an absent object."""
    name = live["metadata"]["name"]
    for part, method, of in product(_SUBRESOURCES, _METHODS[:5], (name, "absent")):
        body = (
            None if method in {"GET", "DELETE"} else live if method == "PUT" else {"metadata": {"labels": {"a": "b"}}}
        )
        type_ = MERGE if method == "PATCH" else "application/json"
        origin = f"parts: {key(obj)}: {method} {'' if of == name else 'absent '}{part}"
        yield request(origin, method, f"{kind.root}/{of}/{part}", body, type_=type_, **_DRY)


_SCALE: Final[Object] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}


def scale_requests(kind: Target, live: Object) -> Iterator[Request]:
    """Yield odd writes of a Scale."""
    name = live["metadata"]["name"]
    of, url = f"{live['kind']} {name}", f"{kind.root}/{name}/scale"
    metadata = {"name": name, "namespace": NAMESPACE}
    bodies: dict[str, Object] = {
        "plain": {**_SCALE, "metadata": metadata},
        "no metadata": _SCALE,
        "no kind": {"metadata": metadata, "spec": {"replicas": 2}},
        "no spec": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata},
        "other kind": {**_SCALE, "kind": "Deployment", "metadata": metadata},
        "other version": {**_SCALE, "apiVersion": "autoscaling/v2", "metadata": metadata},
        "other name": {**_SCALE, "metadata": {**metadata, "name": "other"}},
        "other namespace": {**_SCALE, "metadata": {**metadata, "namespace": "other"}},
        "old revision": {**_SCALE, "metadata": {**metadata, "resourceVersion": "1"}},
        "revision text": {**_SCALE, "metadata": {**metadata, "resourceVersion": "abc"}},
        "uid": {**_SCALE, "metadata": {**metadata, "uid": UID}},
        "labels": {**_SCALE, "metadata": {**metadata, "labels": {"a": "b"}}},
        "unknown field": {**_SCALE, "metadata": metadata, "unknownField": 1},
        **{
            f"replicas {value!r}": {**_SCALE, "metadata": metadata, "spec": {"replicas": value}}
            for value in (0, -1, "1", 1.5, None, 2**31, 2**40, True)
        },
    }
    for change, body in bodies.items():
        for validation in ("Warn", "Strict"):
            options = {**_DRY, "fieldValidation": validation}
            yield request(f"scales: {of}: PUT {change} {validation}", "PUT", url, body, **options)
            yield request(f"scales: {of}: merge {change} {validation}", "PATCH", url, body, type_=MERGE, **options)
            yield request(
                f"scales: {of}: apply {change} {validation}",
                "PATCH",
                url,
                body,
                type_=APPLY,
                fieldManager="a",
                **options,
            )
        yield request(f"scales: {of}: strategic {change}", "PATCH", url, body, type_=STRATEGIC, **_DRY)
    for patch in (
        [{"op": "replace", "path": "/spec/replicas", "value": 3}],
        [{"op": "remove", "path": "/spec/replicas"}],
    ):
        yield request(f"scales: {of}: json {patch}", "PATCH", url, patch, type_=JSON_PATCH, **_DRY)
    yield request(f"scales: {of}: POST", "POST", url, _SCALE, **_DRY)
    yield request(f"scales: {of}: DELETE", "DELETE", url, **_DRY)


def eviction_requests(pods: Target, live: Object) -> Iterator[Request]:
    """Yield odd evictions and bindings of a pod."""
    name = live["metadata"]["name"]
    metadata = {"name": name, "namespace": NAMESPACE}
    for kind, versions, part, more in (
        ("Eviction", ("policy/v1", "policy/v1beta1", "policy/v2", "v1", ""), "eviction", {}),
        ("Binding", ("v1", "v2", "apps/v1", ""), "binding", {"target": {"kind": "Node", "name": "node-1"}}),
    ):
        plain = {"apiVersion": versions[0], "kind": kind, "metadata": metadata, **more}
        bodies: dict[str, Any] = {
            **{f"version {version}": {**plain, "apiVersion": version} for version in versions},
            "no version": {"kind": kind, "metadata": metadata, **more},
            "no kind": {"apiVersion": versions[0], "metadata": metadata, **more},
            "other kind": {**plain, "kind": "Pod"},
            "no metadata": {"apiVersion": versions[0], "kind": kind, **more},
            "other name": {**plain, "metadata": {**metadata, "name": "other"}},
            "other namespace": {**plain, "metadata": {**metadata, "namespace": "other"}},
            "uid": {**plain, "metadata": {**metadata, "uid": UID}},
            "no target": {**plain, "target": {}},
            "target kind": {**plain, "target": {"kind": "Pod", "name": "x"}},
            "target name": {**plain, "target": {"kind": "Node", "name": "No such!"}},
            **{
                f"options {options}": {**plain, "deleteOptions": options}
                for options in (
                    {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": -1}, {"propagationPolicy": "No"},
                    {"preconditions": {"uid": UID}}, {"preconditions": {"resourceVersion": "1"}}, {"dryRun": ["No"]}, 5,
                )
            },
            "unknown field": {**plain, "unknownField": 1},
        }  # fmt: skip
        for change, body in bodies.items():
            for validation in ("Warn", "Strict"):
                query = {**_DRY, "fieldValidation": validation}
                origin = f"evictions: {kind} {change} {validation}"
                yield request(origin, "POST", f"{pods.root}/{name}/{part}", body, **query)
                yield request(f"{origin} absent", "POST", f"{pods.root}/absent/{part}", body, **query)
        for body in _BODIES:
            yield request(f"evictions: {kind} {body!r}", "POST", f"{pods.root}/{name}/{part}", body, **_DRY)
        yield request(
            f"evictions: {kind} in YAML", "POST", f"{pods.root}/{name}/{part}", orjson.dumps(plain), type_=YAML, **_DRY
        )


_YAML: Final = {
    "merge key": "base: &b {x: y}\nmetadata: {name: m}\ndata: {<<: *b, z: w}\n",
    "merge key, own first": "base: &b {x: y}\nmetadata: {name: m}\ndata: {x: own, <<: *b}\n",
    "merge list": "a: &a {x: y}\nb: &b {x: other, z: w}\nmetadata: {name: m}\ndata: {<<: [*a, *b]}\n",
    "merge text": "metadata: {name: m}\ndata: {<<: text}\n",
    "merge inline": "metadata: {name: m}\ndata: {<<: {x: y}}\n",
    "merge nested": "a: &a {<<: {x: y}}\nmetadata: {name: m}\ndata: {<<: *a}\n",
    "merge list of text": "metadata: {name: m}\ndata: {<<: [text]}\n",
    "merge quoted": "metadata: {name: m}\ndata: {'<<': text}\n",
    "merge twice": "metadata: {name: m}\ndata: {<<: {x: y}, <<: {z: w}}\n",
    "anchor": "metadata: {name: &n m}\ndata: {x: *n}\n",
    "unknown anchor": "metadata: {name: *n}\n",
    "two documents": "metadata: {name: m}\n---\nmetadata: {name: n}\n",
    "document end": "---\nmetadata: {name: m}\n...\n",
    "comment only": "# nothing\n",
    "tab": "metadata:\n\tname: m\n",
    "duplicate": "metadata: {name: m}\nmetadata: {name: n}\n",
    "octal": "metadata: {name: m}\ndata: {x: 0o17}\n",
    "yes": "metadata: {name: m}\ndata: {x: yes}\nimmutable: yes\n",
    "on": "metadata: {name: m}\nimmutable: on\n",
    "date": "metadata: {name: m}\ndata: {x: 2026-01-01}\n",
    "number": "metadata: {name: m}\ndata: {x: 1e3}\n",
    "null": "metadata: {name: m}\ndata: {x: ~}\n",
    "number key": "metadata: {name: m}\ndata: {1: x}\n",
    "bool key": "metadata: {name: m}\ndata: {yes: x}\n",
    "null key": "metadata: {name: m}\ndata: {~: x}\n",
    "binary": "metadata: {name: m}\ndata: {x: !!binary aGVsbG8=}\n",
    "tag": "metadata: {name: m}\ndata: {x: !mine y}\n",
    "string tag": "metadata: {name: m}\ndata: {x: !!str 5}\n",
    "block": "metadata: {name: m}\ndata:\n  x: |\n    a\n    b\n",
    "base 60": "metadata: {name: m}\ndata: {x: 1:30}\n",
    "infinity": "metadata: {name: m}\ndata: {x: .inf}\n",
}


def yaml_requests() -> Iterator[Request]:
    """Yield ConfigMaps in odd YAML, created and applied."""
    root = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    for change, text in _YAML.items():
        for validation in ("Warn", "Strict"):
            options = {**_DRY, "fieldValidation": validation}
            head = "apiVersion: v1\nkind: ConfigMap\n"
            body = (f"---\n{head}{text[4:]}" if text.startswith("---") else head + text).encode()
            yield request(f"yaml: {change} {validation}: POST", "POST", root, body, type_=YAML, **options)
            url, more = f"{root}/m", {"fieldManager": "a", **options}
            yield request(f"yaml: {change} {validation}: apply", "PATCH", url, body, type_=APPLY, **more)


def _text(query: dict[str, str]) -> str:
    return "&".join(
        f"{name}={value if len(value) < 40 else f'{value[:9]}*{len(value)}'}" for name, value in query.items()
    )
