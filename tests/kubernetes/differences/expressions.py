"""CEL of custom resource definitions: expressions over values of every type, and objects that they judge."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from tests.kubernetes.differences.requests import Request, Target, request, target
from tests.support.rest import Object

_GROUP: Final = "differences.example.com"
CRDS: Final = target("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
_SCHEMAS: Final[dict[str, Object]] = {
    "string": {"type": "string", "maxLength": 20},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string", "format": "date-time"},
    "duration": {"type": "string", "format": "duration"},
    "bytes": {"type": "string", "format": "byte", "maxLength": 20},
    "list": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 9}},
    "numbers": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
    "object": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "integer"}}},
    "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    "either": {"x-kubernetes-int-or-string": True, "maxLength": 9},
    "unknown": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "nullable": {"type": "string", "nullable": True, "maxLength": 9},
    "long": {"type": "string"},
}
EXPRESSIONS: Final = (
    *(
        "self > 3",
        "self == 'x'",
        "self == 3",
        "self == 3.0",
        "self == true",
        "self",
        "!self",
        "'x'",
        "1",
        "null",
        "true",
    ),
    *("self.size() > 3", "size(self) > 3", "self.matches('^a')", "self.matches('[')", "self.startsWith('a')"),
    *("self + 1 == 2", "self + 'x' == 'ax'", "self - 1 > 0", "self / 0 == 1", "self % 2 == 0", "-self < 0"),
    *("self.a == 'x'", "self.b > 3", "self.c == 1", "has(self.a)", "has(self.c)", "self['a'] == 'x'", "self[0] == 'x'"),
    *("self['a'] == 1", "'a' in self", "1 in self", "self in ['a']", "self in [1, 2]", "self.all(x, x > 1)"),
    *(
        "self.all(x, x == 'a')",
        "self.exists(x, x.startsWith('a'))",
        "self.map(x, x + 1).size() > 0",
        "self.filter(x, x > 1) == []",
    ),
    *(
        "self.exists_one(x, x == 'a')",
        "self.all(k, v, v > 0)",
        "self.transformList(k, v, v).size() > 0",
        "self.sum() > 3",
    ),
    *("self.min() > 1", "self.isSorted()", "self.indexOf('a') > 0", "self.lastIndexOf(1) > 0", "self.join(',') == ''"),
    *("semver(self).major() > 1", "isSemver(self)", "isSemver('1.0.0')", "semver('1.0.0').isLessThan(semver('2.0.0'))"),
    *("semver('v1.0', true).minor() == 0", "semver(3)", "semver('x').major() == 1", "isSemver('v1', true)"),
    *(
        "quantity(self).isGreaterThan(quantity('1'))",
        "isQuantity(self)",
        "quantity('x') == quantity('1')",
        "ip(self).family() == 4",
    ),
    *(
        "isIP(self)",
        "cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))",
        "isCIDR(self)",
        "ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').prefixLength() == 8",
    ),
    *(
        "url(self).getHost() == 'a'",
        "isURL(self)",
        "format.dns1123Label().validate(self).hasValue()",
        "format.named('uuid').hasValue()",
    ),
    *(
        "self.lowerAscii() == 'a'",
        "self.upperAscii() == 'A'",
        "self.trim() == ''",
        "self.split(',').size() == 1",
        "self.replace('a', 'b') == 'b'",
    ),
    *(
        "self.substring(1) == ''",
        "self.charAt(0) == 'a'",
        "self.find('a') == 'a'",
        "self.findAll('a').size() == 1",
        "self.reverse() == 'a'",
    ),
    *(
        "'%s'.format([self]) == 'a'",
        "'%d'.format([self]) == '1'",
        "strings.quote(self) == ''",
        "base64.encode(b'a') == ''",
    ),
    *("oldSelf == self", "self == oldSelf || self != null", "oldSelf.hasValue()", "oldSelf.orValue(self) == self"),
    *(
        "foo == 1",
        "self.foo()",
        "foo(self)",
        "self ==",
        "(self == self",
        "self == self)",
        "",
        " ",
        "self == self // why",
        "self = 1",
    ),
    *(
        "int(self) > 3",
        "string(self) == '3'",
        "double(self) > 1.0",
        "uint(self) > 3u",
        "bool(self)",
        "bytes(self) == b'a'",
        "dyn(self) == 1",
    ),
    *(
        "type(self) == string",
        "type(self) == int",
        "timestamp(self) > timestamp('2020-01-01T00:00:00Z')",
        "self.getFullYear() > 2000",
    ),
    *(
        "duration('1h') > duration('1m')",
        "self > duration('1s')",
        "self.getSeconds() > 1",
        "self < timestamp('2030-01-01T00:00:00Z')",
    ),
    *(
        "cel.bind(x, self, x == self)",
        "math.greatest(1, 2) == 2",
        "math.abs(-1) == 1",
        "sets.contains([1], [1])",
        "lists.range(3).size() == 3",
    ),
    *("optional.of(self).hasValue()", "self.?a.orValue('x') == 'x'", "self.?c.hasValue()", "[1, 2].all(x, x > self)"),
    *(
        "self.metadata.name == 'x'",
        "self.__a__ == 1",
        "self.apiVersion == 'v1'",
        "object == self",
        "request.name == 'x'",
        "params == 1",
    ),
    *(
        "authorizer.group('').check('get').allowed()",
        "variables.x == 1",
        "has(self)",
        "self ? true : false",
        "self == {}",
        "self == []",
    ),
    *(
        "self.all(x, self.all(y, x == y))",
        "self.map(x, x > 1, x).size() > 0",
        "1 == 'a'",
        "[1, 'a'].size() == 2",
        "{1: 'a', 'b': 2}.size() == 2",
    ),
    *(
        "jsonpatch.escapeKey('a') == 'a'",
        "Object{}.a == 1",
        "self.flatten().size() > 0",
        "self.distinct().size() > 0",
        "self.sort().size() > 0",
    ),
)
_RULES: Final[dict[str, Object]] = {
    "message": {"rule": "self == self", "message": ""},
    "message lines": {"rule": "self == self", "message": "a\nb"},
    "message long": {"rule": "self == self", "message": "a" * 3000},
    "message expression": {"rule": "self == self", "messageExpression": "'is ' + string(self)"},
    "message expression type": {"rule": "self == self", "messageExpression": "5"},
    "message expression wrong": {"rule": "self == self", "messageExpression": "self ="},
    "message expression empty": {"rule": "self == self", "messageExpression": ""},
    "reason": {"rule": "self == self", "reason": "FieldValueForbidden"},
    "reason unknown": {"rule": "self == self", "reason": "No"},
    "field path": {"rule": "self == self", "fieldPath": ".a"},
    "field path absent": {"rule": "self == self", "fieldPath": ".c"},
    "field path wrong": {"rule": "self == self", "fieldPath": "a"},
    "optional": {"rule": "oldSelf.hasValue()", "optionalOldSelf": True},
    "optional, not used": {"rule": "self == self", "optionalOldSelf": True},
    "no rule": {"message": "x"},
    "rule type": {"rule": 5},
    "rule null": {"rule": None},
    "unknown field": {"rule": "self == self", "other": 1},
}
VALUES: Final = (
    "a",
    "abc",
    "",
    "1.2.3",
    "v1.2",
    "10.0.0.1",
    "10.0.0.0/8",
    "1Gi",
    "https://a.b/c",
    "ü",
    "aaaaaaaaaaaaaaaaaaaaa",
)
_JUDGED: Final = (
    *("semver(self).major() >= 1", "isSemver(self)", "isSemver(self, true)", "isIP(self)", "ip(self).family() == 4"),
    *(
        "isCIDR(self)",
        "isQuantity(self)",
        "quantity(self).isGreaterThan(quantity('1'))",
        "isURL(self)",
        "url(self).getHost() == 'a.b'",
    ),
    *("self.size() < 3", "self.matches('^[a-c]+$')", "self.lowerAscii() == self", "self.split('.').size() == 3"),
    *("self.find('[0-9]+') == '1'", "int(self) > 1", "self.charAt(0) == 'a'"),
    *("cidr(self).prefixLength() == 8", "self.substring(1, 2) == 'b'", "oldSelf == self", "type(self) == string"),
)


def expression_requests() -> Iterator[Request]:
    """Yield dry runs of definitions, one for each type and expression."""
    for (type_, schema), rule in product(_SCHEMAS.items(), EXPRESSIONS):
        yield _definition(f"{type_}: {rule}", schema, {"rule": rule})
    for (type_, schema), (change, rule) in product(_SCHEMAS.items(), _RULES.items()):
        yield _definition(f"{type_}: {change}", schema, rule)


def _definition(change: str, schema: Object, rule: Object) -> Request:
    checked = {**schema, "x-kubernetes-validations": [rule]}
    return request(f"cel: {change}", "POST", CRDS.root, definition("checks", {"value": checked}), dryRun="All")


def definition(plural: str, properties: Object) -> Object:
    """Return a definition whose objects have these fields in their spec."""
    kind = plural.capitalize()
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                }
            ],
        },
    }  # fmt: skip


JUDGE: Final = definition(
    "judges",
    {
        "n": {"type": "integer"},
        **{
            f"f{index}": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": rule}]}
            for index, rule in enumerate(_JUDGED)
        },
    },
)
"""A definition with a field for each judged expression."""
JUDGES: Final[Target] = target(f"{_GROUP}/v1", "judges", namespaced=True)


def judged_requests() -> Iterator[Request]:
    """Yield objects of `JUDGE`, one for each expression and value."""
    for (index, rule), value in product(enumerate(_JUDGED), VALUES):
        yield request(
            f"cel: {rule} of {value!r}", "POST", JUDGES.root, a_judge("x", {f"f{index}": value}), dryRun="All"
        )


def a_judge(name: str, spec: Any) -> Object:
    """Return an object of `JUDGE`."""
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Judges", "metadata": {"name": name}, "spec": spec}
