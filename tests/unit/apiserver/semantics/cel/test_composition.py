"""Variables of a policy inside its expressions: laziness, types, error positions, the authorizer."""

from typing import Any

import pytest

from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision, authorize_with, authorizer
from federation.apiserver.semantics.cel.composition import Environment, evaluate
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, OutOfBudget

OBJECT = {"spec": {"replicas": 5}, "items": list(range(200))}


def names(**variables: str) -> Environment:
    environment = Environment(("object", "request", "authorizer"), {"request": {"name": None, "kind": {"kind": None}}})
    for name, text in variables.items():
        environment.add_variable(name, text)
    return environment


def value(text: str, **variables: str) -> Any:
    return evaluate(names(**variables).compile(text), {"object": OBJECT, "request": {"name": "n"}})


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("variables.a + 1", {"a": "object.spec.replicas"}, 6),
        ("variables . a + 1", {"a": "object.spec.replicas"}, 6),
        ("variables.b * 2", {"a": "object.spec.replicas", "b": "variables.a + 1"}, 12),
        ("variables.b", {"a": "1 // a comment", "b": "variables.a + 1"}, 2),
        ("'variables.nothing'", {}, "variables.nothing"),
        ("true || variables.broken", {"broken": "object.nothing == 1"}, True),
        ("object.items.exists(i, i == variables.a)", {"a": "7"}, True),
        ("variables.a.orValue(3)", {"a": "object.?nothing"}, 3),
    ],
)
def test_variables_are_bound_where_they_are_used(text: str, variables: dict[str, str], expected: object) -> None:
    assert value(text, **variables) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variables.c == 1", "ERROR: <input>:1:10: undefined field 'c'\n | variables.c == 1\n | .........^"),
        ("variables.a == 1 &&\n  nope", "ERROR: <input>:2:3: undeclared reference to 'nope'"),
        ("request.nope == 'x'", "ERROR: <input>:1:8: undefined field 'nope'"),
        ("request.kind.version == 'x'", "ERROR: <input>:1:13: undefined field 'version'"),
        ("variables.a", "must evaluate to bool but got int"),
        ("object.spec", "must evaluate to bool but got dyn"),
        ("[1]", "must evaluate to bool but got list(int)"),
    ],
)
def test_compile_error_has_the_position_of_the_original_text(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        names(a="1").compile(text, ("BOOL",))
    assert message in str(caught.value)


def test_field_of_the_request_is_dynamic() -> None:
    assert names().compile("request.name", ("BOOL",)).returns == "DYN"


def test_use_of_a_broken_variable_reports_its_error() -> None:
    environment = names()
    with pytest.raises(CompileError):
        environment.add_variable("a", "1 +")
    with pytest.raises(CompileError, match="variable a is broken: compilation failed"):
        environment.compile("variables.a == 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("object.nothing == 1", "no such key: nothing"),
        ("object.spec.replicas.x == 1", "no such overload"),
        ("object.spec.replicas < dyn('a')", "no such overload"),
        ("variables.a == 1", "no such key: nothing"),
    ],
)
def test_evaluation_errors_have_the_text_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        value(text, a="object.nothing")
    assert str(caught.value) == message


def test_evaluation_with_too_many_steps_is_stopped() -> None:
    with pytest.raises(OutOfBudget):
        value("object.items.all(a, object.items.all(b, object.items.all(c, a + b + c >= 0)))")


def test_authorizer_chain_builds_the_access_check() -> None:
    checks: list[AccessCheck] = []

    def decide(check: AccessCheck) -> AccessDecision:
        checks.append(check)
        return AccessDecision(check.verb == "get", "because")

    own = authorizer(group="", resource="pods", subresource="", namespace="ns", name="p")

    def run(text: str) -> object:
        with authorize_with(decide):
            return evaluate(names().compile(text), {"authorizer": own})

    deployments = "authorizer.group('apps').resource('deployments')"
    assert run(f"{deployments}.namespace('n').name('web').subresource('scale').check('get').allowed()") is True
    assert checks.pop() == AccessCheck("get", "apps", "deployments", "scale", "n", "web")
    assert run("authorizer.requestResource.check('create').allowed()") is False
    assert checks.pop() == AccessCheck("create", "", "pods", "", "ns", "p")
    assert run("authorizer.serviceAccount('a', 'b').path('/healthz').check('get').reason()") == "because"
    assert checks.pop() == AccessCheck("get", path="/healthz", service_account=("a", "b"))
    assert run("authorizer.path('/x').check('get').errored()") is False
    for text in ("authorizer.path(' ')", "authorizer.check('get')", "authorizer.group('').resource('')"):
        with pytest.raises(EvaluationError):
            run(f"{text}.check('get').allowed()")
    with pytest.raises(EvaluationError, match="Invalid service account"):
        run("authorizer.serviceAccount('A', 'b').path('/x').check('get').allowed()")


def test_check_without_an_authorizer_is_an_error() -> None:
    own = authorizer(group="", resource="pods", subresource="", namespace="ns", name="p")
    program = names().compile("authorizer.requestResource.check('get').errored()")
    assert evaluate(program, {"authorizer": own}) is True
