"""Properties of server-side apply over random configurations of several managers."""

import copy
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.api.names import FIELD_MANAGER
from federation.apimachinery.errors import Conflict
from federation.apiserver.semantics.fieldownership.apply import apply
from federation.apiserver.semantics.fieldownership.fieldset import is_field_set, paths
from federation.apiserver.semantics.fieldownership.managedfields import track_update
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.planning.drift.delivered import delivered_of, plan_repair

NOW = datetime(2024, 1, 1, tzinfo=UTC)
DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")

labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1, max_size=3)


def optional(**fields):
    return st.fixed_dictionaries({}, optional=fields)


container = st.builds(
    lambda name, rest: {"name": name, **rest},
    st.sampled_from("abc"),
    optional(
        image=st.sampled_from(["i:1", "i:2"]),
        env=st.lists(st.sampled_from("AB"), unique=True, min_size=1).map(lambda names: [{"name": n} for n in names]),
        ports=st.lists(st.sampled_from([80, 81]), unique=True, min_size=1).map(
            lambda ports: [{"containerPort": port} for port in ports]
        ),
        args=st.lists(st.sampled_from("pq"), min_size=1, max_size=2),
    ),
)
containers = st.lists(container, min_size=1, max_size=3, unique_by=lambda item: item["name"])
spec = optional(
    replicas=st.integers(0, 2),
    paused=st.booleans(),
    selector=labels.map(lambda pairs: {"matchLabels": pairs}),
    strategy=optional(type=st.sampled_from(["RollingUpdate"]), rollingUpdate=optional(maxSurge=st.integers(1, 2))),
    template=st.builds(
        lambda meta, items: {"metadata": meta, "spec": {"containers": items}}, optional(labels=labels), containers
    ),
)
metadata = optional(
    labels=labels,
    annotations=labels,
    finalizers=st.lists(st.sampled_from(["f/a", "f/b"]), unique=True, min_size=1),
)


@st.composite
def configurations(draw):
    found = draw(metadata)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", **found},
        "spec": draw(spec),
    }


steps = st.lists(
    st.tuples(st.sampled_from(["apply", "force", "update"]), st.sampled_from(["one", "two"]), configurations()),
    min_size=1,
    max_size=5,
)


def applied(live, config, manager, *, force=True):
    return apply(DEPLOYMENT, live, config, manager=manager, force=force, api_version="apps/v1", subresource="", now=NOW)


def run(history):
    live = None
    for verb, manager, config in history:
        if verb == "update":
            new = copy.deepcopy(config)
            if live is not None:
                new["metadata"]["managedFields"] = live["metadata"].get("managedFields")
            live = track_update(DEPLOYMENT, live, new, manager=manager, api_version="apps/v1", subresource="", now=NOW)
        else:
            try:
                live = applied(live, config, manager, force=verb == "force")
            except Conflict:
                continue
    return live


def sets(obj):
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): set(paths(entry["fieldsV1"])) for entry in entries}


@pytest.mark.slow("generated objects of many fields")
@examples(150)
@given(steps, configurations())
def test_applying_twice_is_applying_once(history, config):
    once = applied(run(history), config, "me")
    twice = apply(
        DEPLOYMENT,
        once,
        copy.deepcopy(config),
        manager="me",
        force=False,
        api_version="apps/v1",
        subresource="",
        now=NOW + timedelta(hours=1),
    )
    assert twice == once


@pytest.mark.slow("each example applies several configurations")
@examples(150)
@given(steps, configurations())
def test_what_is_applied_is_there_and_inputs_stay(history, config):
    live = run(history)
    kept = copy.deepcopy((live, config))
    after = applied(live, config, "me")
    assert (live, config) == kept
    assert_holds(after, config)
    for entry in after["metadata"].get("managedFields", []):
        assert is_field_set(entry["fieldsV1"])
        assert entry["fieldsV1"]


def assert_holds(found, wanted):
    """Every value of `wanted` is in `found`; in a list of named items by name, in a set as a member."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if value not in ({}, []):
                assert_holds(found[key], value)
    elif isinstance(wanted, list) and wanted and isinstance(wanted[0], dict):
        for item in wanted:
            key = "name" if "name" in item else "containerPort"
            assert_holds(next(other for other in found if other[key] == item[key]), item)
    elif isinstance(wanted, list):
        assert set(wanted) <= set(found)
    else:
        assert found == wanted


@pytest.mark.slow("each example applies several configurations")
@examples(150)
@given(steps, configurations())
def test_what_only_its_owner_set_goes_when_it_is_dropped(history, config):
    live = run(history)
    if live is None:
        return
    empty = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    before = sets(applied(live, empty, "me"))
    gone = applied(applied(live, config, "me"), empty, "me")
    assert ("me", "Apply") not in sets(gone)
    # Taking fields by force and giving them up may cost others what was taken, and never gives them anything.
    for owner, fields in sets(gone).items():
        assert fields <= before.get(owner, set())


@pytest.mark.slow("each example applies several configurations")
@examples(150)
@given(steps, configurations())
def test_force_never_costs_others_what_it_does_not_name(history, config):
    live = run(history)
    if live is None:
        return
    before, after = sets(live), sets(applied(live, config, "me"))
    mine = after.get(("me", "Apply"), set())
    for owner, fields in before.items():
        if owner[0] != "before-first-apply":
            lost = fields - after.get(owner, set())
            assert all(any(_covers(path, field) for path in mine) for field in lost)


def _covers(path, field):
    return field.startswith(path) or path.startswith(field)


@examples(150)
@given(steps, configurations())
def test_the_configuration_of_the_last_apply_is_found_in_the_object(history, config):
    live = applied(run(history), config, FIELD_MANAGER)
    live = {**live, "metadata": {**live["metadata"], "uid": "u"}}
    delivered = delivered_of(live)
    assert delivered is not None
    assert delivered.configuration == config
    assert plan_repair(delivered, live) is None
