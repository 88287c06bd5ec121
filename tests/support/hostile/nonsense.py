"""Invalid values and mutations of JSON documents, all from one `random.Random`.

What `wrong_for` gives is of the wrong type for sure; what `mutated` gives may be valid. `requests.py` puts them on the
wire.
"""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
INT_OR_STRING = frozenset(
    {"targetPort", "port", "maxUnavailable", "maxSurge", "minAvailable", "number", "minimum", "maximum"}
)
QUANTITIES = frozenset({"requests", "limits", "capacity", "hard", "default", "defaultRequest", "allocatable"})
FREE = frozenset({"fieldsV1", "managedFields", "free", "enum", "subresources"})
TEXTS = (
    "", " ", "a", "A_B", "-", "..", "../../etc/passwd", "a/b/c", "a" * 254, "x" * 70_000, "\x00", "\x1b[31m", "é\u2028", "\ud800",
    "\udfff\ud800", "\U0001d54f" * 64, "${jndi:ldap://x}", "{{ .Values }}", "$(A)", "1e999", "NaN", "0x10", "-0", "null", "true",
    "2020-13-45T99:99:99Z", "9" * 400, "10Ei" * 9, "1.2.3.4.5", "::1%eth0", "a=b,c in (d", "*", "%s%n", "\\", '"', "\u202egpj",
)  # fmt: skip
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**31 - 1,
    -(2**31) - 1,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**40,
    10**400,
    0.1,
    -0.0,
    1e308,
    5e-324,
)
WORDS = (
    "metadata", "spec", "status", "kind", "apiVersion", "name", "namespace", "labels", "annotations", "finalizers", "data",
    "ownerReferences", "managedFields", "resourceVersion", "uid", "replicas", "selector", "matchLabels", "template",
    "containers", "rules", "roleRef", "subjects", "versions", "schema", "names", "group", "ports", "type", "generateName",
    "deletionTimestamp", "creationTimestamp", "$patch", "$retainKeys", "$setElementOrder/containers", "op", "path", "value",
    "$deleteFromPrimitiveList/finalizers", "matchExpressions", "target", "limits", "preconditions", "deleteOptions",
    "generation", "selfLink", "env", "volumes", "immutable", "stringData", "x-kubernetes-validations", "properties", "items",
)  # fmt: skip


def anything(rng: random.Random, depth: int = 4) -> Any:
    """Return any JSON value, or one that JSON does not allow, such as NaN."""
    roll = rng.random()
    if depth == 0 or roll < 0.25:
        return rng.choice(TEXTS)
    if roll < 0.4:
        return rng.choice(NUMBERS)
    if roll < 0.5:
        return rng.choice((None, True, False, [], {}))
    if roll < 0.52:
        return rng.choice((float("nan"), float("inf"), float("-inf")))
    if roll < 0.7:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS): anything(rng, depth - 1) for _ in range(rng.randrange(5))}


def paths(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every path in a value except the root, with its value."""
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in children:
        yield (*at, step), inner
        yield from paths(inner, (*at, step))


def typed_paths(value: Any) -> list[tuple[Path, Any]]:
    """Return the paths whose types a server knows: not below fields that may hold anything."""
    untyped = {"apiVersion", "kind", "status", *(("data",) if value.get("kind") == "ControllerRevision" else ())}
    return [
        (path, inner)
        for path, inner in paths(value)
        if inner is not None and not FREE.intersection(map(str, path)) and path[0] not in untyped
    ]


def wrong_for(rng: random.Random, path: Path, value: Any) -> Any:
    """Return a value of a wrong type for the place of `value`."""
    if isinstance(value, dict):
        return rng.choice(("x", 5, True, [1], 1.5))
    if isinstance(value, list):
        return rng.choice(("x", 5, False, {"a": 1}))
    wrong: list[Any] = [[], ["x"], {"a": 1}, [[[]]]]
    is_lenient = bool(INT_OR_STRING.intersection(map(str, path)) or QUANTITIES.intersection(map(str, path)))
    if not is_lenient:
        if isinstance(value, bool):
            wrong += ["true", 1]
        elif isinstance(value, int):
            wrong += ["1", 1.5, 10**30, True]
        elif isinstance(value, str) and path[-1] != "storage":
            wrong += [5, True, 1.5]
    return rng.choice(wrong)


def with_value(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of a value with another one at a path."""
    changed = copy.deepcopy(value)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return changed


def mutated(rng: random.Random, value: Any) -> Any:
    """Return a copy with some things in it replaced, removed, renamed, repeated or wrapped."""
    changed = copy.deepcopy(value)
    for _ in range(rng.randint(1, 4)):
        found = [(path, inner) for path, inner in paths(changed) if "managedFields" not in path or rng.random() < 0.05]
        if not found:
            return changed
        path, inner = rng.choice(found)
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        match rng.randrange(8):
            case 0:
                del holder[path[-1]]
            case 1:
                holder[path[-1]] = None
            case 2 if isinstance(inner, list):
                holder[path[-1]] = inner * rng.choice((2, 3, 100))
            case 3 if isinstance(holder, dict):
                holder[rng.choice((*WORDS, *TEXTS[:16]))] = holder.pop(path[-1])
            case 4:
                holder[path[-1]] = wrong_for(rng, path, inner)
            case 5 if isinstance(inner, dict):
                inner[rng.choice(WORDS)] = anything(rng)
            case 6:
                holder[path[-1]] = [inner] if rng.random() < 0.5 else {"a": inner}
            case _:
                holder[path[-1]] = anything(rng, 2)
    return changed


def to_json(value: Any) -> bytes:
    """Return JSON as a careless client writes it: NaN, any integer, lone surrogates as escapes."""
    return json.dumps(value).encode()


def broken(rng: random.Random, body: bytes) -> bytes:
    """Return bytes that are no JSON and no YAML mapping."""
    cut = rng.randrange(1, max(2, len(body) - 1))
    match rng.randrange(12):
        case 0:
            return body[:cut]
        case 1:
            return body + rng.choice((b"}", b"{}", b"[]", b",", b"\x00"))
        case 2:
            return (
                body[:cut] + rng.choice((b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80")) + body[cut:]
            )
        case 3:
            return b"[" * rng.choice((200, 100_000))
        case 4:
            return b'{"a":' * rng.choice((200, 100_000)) + b"1" + b"}" * 200
        case 5:
            return rng.choice((b"null", b"[]", b'"x"', b"5", b"true", b"[{}]", b"1e400", b"-"))
        case 6:
            return b"\x1f\x8b\x08\x00" + rng.randbytes(30)
        case 7:
            return (
                b'{"a":'
                + rng.choice((b"NaN", b"Infinity", b"-Infinity", b"01", b".5", b"1.", b"'x'", b"undefined"))
                + b"}"
            )
        case 8:
            return b"k8s\x00" + rng.randbytes(rng.randrange(80))
        case 9:
            return b'{"a":"' + bytes([rng.randrange(0x20)]) + b'"}'
        case 10:
            return rng.randbytes(rng.randrange(1, 100)).replace(b"{", b"\xff")
        case _:
            return b'{"a" "b"}'


ALIAS_BOMB = b"a: &a [x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c, c, c - 1, c - 1, c - 1, c - 1) for c in range(ord("b"), ord("q"))
)
BAD_YAML = (
    ALIAS_BOMB, b"a: &a [*a]\n", b"a: !!python/object:os.system x\n", b"a: b\n---\nc: d\n", b"a: [\n", b"\t- x\n", b"a: *nothing\n",
    b"? [a]\n: b\n", b"- a\n", b"%TAG ! x\n", b"a: .nan\n", b"a: 99999999999999999999999\n", b"a:\n" * 300, b"{" * 500, b"\xff\xfe",
    b"a: 1\na: 2\nb: .inf\n", b"<<: [*x]\n", b"'\x00'", b"&a " * 50,
)  # fmt: skip
