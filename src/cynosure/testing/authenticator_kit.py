"""What every `Authenticator` must do. Bind it by a subclass with a `subject` fixture.

    class TestMine(AuthenticatorKit):
        @pytest.fixture
        async def subject(self) -> AsyncIterator[AuthenticatorSubject]: ...

A maintainer must not break: no test here knows what a token looks like.
"""

import asyncio
import base64
from typing import Protocol

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authenticator
from cynosure.common.errors import CynosureError, NotAuthenticated, NotFound
from cynosure.persistence.spi import RealmId


class AuthenticatorSubject(Protocol):
    """An authenticator, and the world that it answers for."""

    authenticator: Authenticator
    elsewhere: Authenticator
    """The same on another server."""
    realm: RealmId
    other_realm: RealmId
    """Exists, and has a principal `ann` with the role `analyst` too."""

    async def token(self) -> str:
        """A new token of the principal `ann`, who has the role `analyst`."""
        ...

    async def revoke_role(self) -> None:
        """Take the role from the principal."""
        ...

    async def delete_principal(self) -> None:
        """Delete the principal."""
        ...

    async def recreate_principal(self) -> None:
        """Make another principal of the same name with the same role."""
        ...

    async def expire(self) -> None:
        """Let more time pass than tokens live."""
        ...


async def _refusal(authenticator: Authenticator, token: str, realm: RealmId) -> CynosureError:
    with pytest.raises(CynosureError) as refused:
        await authenticator.authenticate(token, realm)
    return refused.value


@pytest.mark.anyio
class AuthenticatorKit:
    """Tests that hold for all authenticators."""

    async def test_a_token_stands_for_its_principal_and_roles(self, subject: AuthenticatorSubject) -> None:
        caller = await subject.authenticator.authenticate(await subject.token(), subject.realm)

        assert (caller.principal, caller.realm, caller.roles) == ("ann", subject.realm, ("analyst",))
        assert caller.identity is not None

    async def test_nobody_becomes_an_operator_by_a_token(self, subject: AuthenticatorSubject) -> None:
        caller = await subject.authenticator.authenticate(await subject.token(), subject.realm)

        assert caller.is_operator is False

    async def test_the_same_token_is_good_again_and_elsewhere(self, subject: AuthenticatorSubject) -> None:
        token = await subject.token()

        callers = [
            await each.authenticate(token, subject.realm)
            for each in (subject.authenticator, subject.authenticator, subject.elsewhere)
        ]

        assert {caller.identity for caller in callers} == {callers[0].identity}

    async def test_many_at_once_get_the_same_answer(self, subject: AuthenticatorSubject) -> None:
        token = await subject.token()

        callers = await asyncio.gather(
            *(subject.authenticator.authenticate(token, subject.realm) for _ in range(20))
        )

        assert len({caller.identity for caller in callers}) == 1

    @pytest.mark.parametrize(
        "token", ["", " ", "x", "a.b.c", "....", "é", "\x00", "x" * 100_000, "null", "Bearer x"]
    )
    async def test_what_is_no_token_is_refused(self, subject: AuthenticatorSubject, token: str) -> None:
        assert isinstance(await _refusal(subject.authenticator, token, subject.realm), NotAuthenticated)

    async def test_a_token_that_was_changed_anywhere_is_refused(self, subject: AuthenticatorSubject) -> None:
        token = await subject.token()
        await subject.authenticator.authenticate(token, subject.realm)

        for at in range(0, len(token), max(1, len(token) // 40)):
            changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
            refusal = await _refusal(subject.authenticator, changed, subject.realm)
            assert isinstance(refusal, NotAuthenticated), at
        for changed in (token[:-1], token + "A", token * 2, token.upper()):
            refusal = await _refusal(subject.authenticator, changed, subject.realm)
            assert isinstance(refusal, NotAuthenticated)

    async def test_a_refusal_shows_nothing_of_the_token(self, subject: AuthenticatorSubject) -> None:
        token = await subject.token() + "A"

        text = str(await _refusal(subject.authenticator, token, subject.realm))

        parts = [part for part in token.split(".") if len(part) > 8] or [token]
        assert not any(part in text for part in parts)
        assert base64.b64encode(token.encode()).decode() not in text

    async def test_a_token_is_of_one_realm(self, subject: AuthenticatorSubject) -> None:
        token = await subject.token()
        await subject.authenticator.authenticate(token, subject.realm)

        refusal = await _refusal(subject.authenticator, token, subject.other_realm)

        assert isinstance(refusal, NotAuthenticated)

    async def test_an_unknown_realm_is_told_before_the_token_is_looked_at(
        self, subject: AuthenticatorSubject
    ) -> None:
        for token in ("", "x", await subject.token()):
            for realm in ("nowhere", "_system", "../x", ""):
                assert isinstance(await _refusal(subject.authenticator, token, RealmId(realm)), NotFound), (
                    realm
                )

    async def test_an_expired_token_is_refused_also_by_who_knew_it(
        self, subject: AuthenticatorSubject
    ) -> None:
        token = await subject.token()
        await subject.authenticator.authenticate(token, subject.realm)

        await subject.expire()

        for each in (subject.authenticator, subject.elsewhere):
            assert isinstance(await _refusal(each, token, subject.realm), NotAuthenticated)

    async def test_a_revoked_role_is_gone_with_the_next_request_everywhere(
        self, subject: AuthenticatorSubject
    ) -> None:
        token = await subject.token()
        for each in (subject.authenticator, subject.elsewhere):
            assert (await each.authenticate(token, subject.realm)).roles == ("analyst",)

        await subject.revoke_role()

        for each in (subject.authenticator, subject.elsewhere):
            assert await _roles_or_refused(each, token, subject.realm) == ()

    async def test_a_deleted_principal_is_refused_with_the_next_request_everywhere(
        self, subject: AuthenticatorSubject
    ) -> None:
        token = await subject.token()
        for each in (subject.authenticator, subject.elsewhere):
            await each.authenticate(token, subject.realm)

        await subject.delete_principal()

        for each in (subject.authenticator, subject.elsewhere):
            assert isinstance(await _refusal(each, token, subject.realm), NotAuthenticated)

    async def test_a_token_does_not_pass_to_another_principal_of_the_same_name(
        self, subject: AuthenticatorSubject
    ) -> None:
        token = await subject.token()
        await subject.authenticator.authenticate(token, subject.realm)

        await subject.delete_principal()
        await subject.recreate_principal()

        for each in (subject.authenticator, subject.elsewhere):
            assert isinstance(await _refusal(each, token, subject.realm), NotAuthenticated)


async def _roles_or_refused(each: Authenticator, token: str, realm: RealmId) -> tuple[str, ...]:
    try:
        caller: Caller = await each.authenticate(token, realm)
    except NotAuthenticated:
        return ()
    return caller.roles
