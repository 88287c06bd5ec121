"""Who a user of the host is in a member."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.identity import ANONYMOUS, MASTERS, User, service_account_user
from federation.memberproxy.memberusers import PREFIX, to_member_user

NAMES = st.one_of(st.text(min_size=1), st.builds(str.__add__, st.sampled_from(["system:", PREFIX]), st.text()))


def test_a_person_keeps_name_and_groups() -> None:
    user = User("alice", ("shop", AUTHENTICATED), "7", {"example.com/scopes": ("read",)})
    assert to_member_user(user) == User("alice", ("shop",), "", {"example.com/scopes": ("read",)})


def test_an_administrator_of_the_host_is_none_of_the_member() -> None:
    assert to_member_user(User("root", (MASTERS, AUTHENTICATED))).groups == (f"{PREFIX}{MASTERS}",)


def test_a_service_account_is_not_the_member_account_of_the_same_name() -> None:
    user = to_member_user(service_account_user("shop", "web", "1"))
    assert user.name == "federation:system:serviceaccount:shop:web"
    assert user.groups == ("federation:system:serviceaccounts", "federation:system:serviceaccounts:shop")


@pytest.mark.parametrize("key", ["authentication.kubernetes.io/node-name", "kubernetes.io/x", "a.k8s.io/b"])
def test_what_describes_the_host_stays_there(key: str) -> None:
    assert to_member_user(User("alice", (), "", {key: ("1",)})).extra == {}


@pytest.mark.parametrize("key", ["scopes", "notkubernetes.io/x", "kubernetes.io"])
def test_other_extra_goes_along(key: str) -> None:
    assert to_member_user(User("alice", (), "", {key: ("1",)})).extra == {key: ("1",)}


def test_nobody_goes_nowhere() -> None:
    with pytest.raises(Forbidden, match="log in"):
        to_member_user(ANONYMOUS)


@given(NAMES, NAMES)
def test_different_users_stay_different(one: str, other: str) -> None:
    same = to_member_user(User(one)).name == to_member_user(User(other)).name
    assert same == (one == other)


@given(NAMES, st.lists(NAMES))
def test_no_name_of_the_system_arrives(name: str, groups: list[str]) -> None:
    user = to_member_user(User(name, tuple(group for group in groups if group != "system:unauthenticated")))
    assert not any(each.startswith("system:") for each in (user.name, *user.groups))


@pytest.mark.parametrize("name", ["system:node:a", "system:", PREFIX, f"{PREFIX}system:node:a", f"{PREFIX}{PREFIX}x"])
def test_a_reserved_name_gets_exactly_one_prefix_more(name: str) -> None:
    """Else `federation:system:node:a` of the host would be `system:node:a` of the host in every member."""
    user = to_member_user(User(name, (name,)))
    assert (user.name, user.groups) == (PREFIX + name, (PREFIX + name,))


@pytest.mark.parametrize("name", ["system", "federation", "a:system:node:a", "System:node:a"])
def test_a_name_that_only_resembles_a_reserved_one_stays(name: str) -> None:
    assert to_member_user(User(name)).name == name
