"""Every privilege has its code, and is satisfied by exactly what the facts say."""

import pytest

from cynosure.auth.rbac.privileges import GRANTABLE, SATISFIED_BY, Privilege, members, set_of
from tests.auth.rbac import facts


def test_every_code_is_as_apache_polaris_has_it():
    assert {each.name: each.value for each in Privilege} == facts.codes()


@pytest.mark.parametrize("name", facts.codes())
def test_a_privilege_is_satisfied_by_exactly_these(name: str):
    found = {each.name for each in members(SATISFIED_BY[Privilege[name]])}

    assert found == facts.satisfied_by()[name]


@pytest.mark.parametrize("kind", facts.grantable())
def test_exactly_these_can_be_granted_on(kind: str):
    assert {each.name for each in GRANTABLE[kind]} == facts.grantable()[kind]


def test_nothing_that_manages_the_service_can_be_granted():
    everything = set().union(*GRANTABLE.values())

    assert Privilege.SERVICE_MANAGE_ACCESS not in everything
    assert not any(each.name.startswith("PRINCIPAL_") for each in everything)


def test_a_set_holds_what_was_put_in():
    chosen = [Privilege.SERVICE_MANAGE_ACCESS, Privilege.TABLE_MANAGE_STRUCTURE]

    assert list(members(set_of(chosen))) == chosen
    assert chosen[0].bit | chosen[1].bit == set_of(chosen)


def test_codes_of_a_newer_version_are_no_members_and_satisfy_nothing():
    unknown = 1 << 200

    assert list(members(unknown)) == []
    assert not any(unknown & by for by in SATISFIED_BY.values())
