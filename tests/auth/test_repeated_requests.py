"""Principals and roles under an Idempotency-Key: done once, answered as at first, however often asked for.

Every operation has a row in `CASES`. Requests are repeated on another server than that of the first attempt,
which may be dead.
"""

import asyncio
import logging
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest

from cynosure.auth import operations
from cynosure.auth.caller import Caller
from cynosure.auth.credentials import PrincipalWithCredentials
from cynosure.auth.entities import SERVICE_ADMIN
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.operations.provision_principal import provision_principal
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.operations.update_principal import update_principal
from cynosure.auth.operations.update_principal_role import update_principal_role
from cynosure.auth.principals import find_client
from cynosure.auth.receipts import unpack_receipt
from cynosure.auth.request_key import Refused, Rehearsed
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.common.errors import CorruptObject, CynosureError, KeyReused, NotFound
from cynosure.persistence.objects import open_envelope
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.known_secrets import KnownSecrets
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import KEY_TEXT, describe_refusal, key_of, with_key
from cynosure.testing.small_realm import SharedBackend, caller_for, identities_of, open_identities_on

pytestmark = pytest.mark.anyio

Step = Callable[[Identities], Awaitable[object]]
Act = Callable[[Identities, Caller], Awaitable[object]]


class Case(NamedTuple):
    """An operation, and what surrounds it in these tests."""

    module: str
    act: Act
    given: tuple[Step, ...]
    """Without these it is refused."""
    later: tuple[Step, ...]
    """What happens to the same things afterwards."""
    who: str = "admin"
    in_the_way: tuple[Step, ...] = ()
    """Instead of `given`: makes it be refused. Left out: nothing is there yet."""
    out_of_the_way: tuple[Step, ...] = ()


async def make_etl(world: Identities) -> None:
    await create_principal(world, ROOT, NewPrincipal("etl"))


async def let_etl_in_from_elsewhere(world: Identities) -> None:
    await provision_principal(world, DEFAULT_REALM, "etl", "https://idp etl")


async def make_role(world: Identities) -> None:
    await create_principal_role(world, ROOT, NewPrincipalRole("readers"))


async def assign(world: Identities) -> None:
    await assign_principal_role(world, ROOT, "etl", "readers")


async def revoke(world: Identities) -> None:
    await revoke_principal_role(world, ROOT, "etl", "readers")


async def change_etl(world: Identities) -> None:
    now = await load_principal(world, ROOT, "etl")
    await update_principal(world, ROOT, "etl", now.version, {"changed": "later"})


async def reset_etl(world: Identities) -> None:
    await reset_credentials(world, ROOT, "etl")


async def drop_etl(world: Identities) -> None:
    await delete_principal(world, ROOT, "etl")


async def drop_role(world: Identities) -> None:
    await delete_principal_role(world, ROOT, "readers")


CASES = [
    Case(
        "create_principal",
        lambda world, who: create_principal(world, who, NewPrincipal("etl", {"a": "b"})),
        (),
        (change_etl, reset_etl, drop_etl),
        in_the_way=(make_etl,),
        out_of_the_way=(drop_etl,),
    ),
    Case(
        "rotate_credentials",
        lambda world, who: rotate_credentials(world, who, "etl"),
        (make_etl,),
        (change_etl,),
        who="etl",
        in_the_way=(let_etl_in_from_elsewhere,),
        out_of_the_way=(reset_etl,),
    ),
    Case(
        "reset_credentials",
        lambda world, who: reset_credentials(world, who, "etl"),
        (make_etl,),
        (change_etl, reset_etl, drop_etl),
        who="root",
    ),
    Case(
        "update_principal",
        lambda world, who: update_principal(world, who, "etl", 1, {"x": "y"}),
        (make_etl,),
        (change_etl, drop_etl),
    ),
    Case(
        "set_trusted_service",
        lambda world, who: set_trusted_service(world, who, "etl", is_trusted=True),
        (make_etl,),
        (change_etl, drop_etl),
    ),
    Case(
        "delete_principal",
        lambda world, who: delete_principal(world, who, "etl"),
        (make_etl,),
        (make_etl,),
    ),
    Case(
        "create_principal_role",
        lambda world, who: create_principal_role(world, who, NewPrincipalRole("readers", {"a": "b"})),
        (),
        (drop_role, make_role),
        in_the_way=(make_role,),
        out_of_the_way=(drop_role,),
    ),
    Case(
        "update_principal_role",
        lambda world, who: update_principal_role(world, who, "readers", 1, {"x": "y"}),
        (make_role,),
        (drop_role,),
    ),
    Case(
        "delete_principal_role",
        lambda world, who: delete_principal_role(world, who, "readers"),
        (make_role,),
        (make_role,),
    ),
    Case(
        "assign_principal_role",
        lambda world, who: assign_principal_role(world, who, "etl", "readers"),
        (make_etl, make_role),
        (revoke, drop_role, drop_etl),
    ),
    Case(
        "revoke_principal_role",
        lambda world, who: revoke_principal_role(world, who, "etl", "readers"),
        (make_etl, make_role, assign),
        (assign, drop_role),
    ),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.module)


@pytest.fixture
async def elsewhere(identities: Identities, shared_backend: SharedBackend) -> AsyncIterator[Identities]:
    """The same store, as another server has it."""
    async with open_identities_on(shared_backend) as opened:
        yield opened


@pytest.fixture
async def admin(identities: Identities) -> Caller:
    made = await create_principal(identities, ROOT, NewPrincipal("admin"))
    await assign_principal_role(identities, ROOT, "admin", SERVICE_ADMIN)
    return caller_for(made.principal)


async def given(case: Case, identities: Identities, admin: Caller, root: Caller) -> Caller:
    await do(case.given, identities)
    return await caller_of(case, identities, admin, root)


async def caller_of(case: Case, identities: Identities, admin: Caller, root: Caller) -> Caller:
    if case.who == "etl":
        return caller_for(await load_principal(identities, ROOT, "etl"))
    return root if case.who == "root" else admin


async def do(steps: tuple[Step, ...], identities: Identities) -> None:
    for step in steps:
        await step(identities)


async def count(identities: Identities) -> int:
    """Commits to the realm's principals so far."""
    return (await identities.read(DEFAULT_REALM)).commit.record.sequence


def test_every_operation_that_changes_something_has_a_case() -> None:
    modules = {each.name for each in pkgutil.iter_modules(operations.__path__)}
    # Made by the server for accounts of other issuers; no request asks for it.
    changing = {each for each in modules if not each.startswith(("list_", "load_"))} - {"provision_principal"}
    assert {case.module for case in CASES} == changing


@each_case
async def test_a_repeated_request_is_done_once_and_has_the_first_result(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    """I73, I74."""
    who = await given(case, identities, admin, root)
    before = await count(identities)

    first = await case.act(identities, with_key(who))
    repeated = with_key(who, is_repeat=True)
    again = await case.act(elsewhere, repeated)

    assert again == first
    assert key_of(repeated).is_recalled
    assert await count(identities) == before + 1


@each_case
async def test_the_first_result_is_given_also_after_later_changes(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    who = await given(case, identities, admin, root)
    first = await case.act(identities, with_key(who))
    await do(case.later, identities)
    before = await count(identities)

    again = await case.act(elsewhere, with_key(who, is_repeat=True))

    assert again == first
    assert await count(identities) == before


@each_case
async def test_a_first_attempt_that_was_overtaken_by_another_has_its_result(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    who = await given(case, identities, admin, root)
    taken_over = await case.act(elsewhere, with_key(who, is_repeat=True))
    before = await count(identities)

    paused = with_key(who)
    result = await case.act(identities, paused)

    assert result == taken_over
    assert key_of(paused).is_recalled
    assert await count(identities) == before


@each_case
async def test_of_many_attempts_at_once_one_has_an_effect_and_all_have_its_result(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    """I73, I74."""
    who = await given(case, identities, admin, root)
    before = await count(identities)

    results = await asyncio.gather(
        *(
            case.act(at, with_key(who, is_repeat=number > 0))
            for number, at in enumerate([identities, elsewhere] * 3)
        )
    )

    assert results == [results[0]] * 6
    assert await count(identities) == before + 1


@each_case
async def test_a_key_with_another_payload_is_refused(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    """I75."""
    who = await given(case, identities, admin, root)
    await case.act(identities, with_key(who))
    before = await count(identities)

    with pytest.raises(KeyReused):
        await case.act(elsewhere, with_key(who, payload="something else", is_repeat=True))

    assert await count(identities) == before


@pytest.mark.parametrize("is_hiding", [False, True], ids=["open", "hiding"])
@each_case
async def test_who_may_not_do_it_any_more_is_not_answered_again(
    case: Case, is_hiding: bool, identities: Identities, admin: Caller, root: Caller
) -> None:
    """I76. Rights are those of now: nothing is told to whom they were taken from."""
    who = await given(case, identities, admin, root)
    await case.act(identities, with_key(who))
    settings = AuthSettings(hide_existence=is_hiding, credential_reset=False)
    strict = identities_of(identities.persistence, settings)
    await revoke_principal_role(identities, ROOT, "admin", SERVICE_ADMIN)
    # Credentials are rotated by their owner only, whom nobody can take that from.
    asking = admin if case.who == "etl" else who
    before = await count(identities)

    with pytest.raises((AccessDenied, NotFound)) as refused:
        await case.act(strict, with_key(asking, is_repeat=True))

    assert isinstance(refused.value, AccessDenied) or isinstance(refused.value.__cause__, AccessDenied)
    assert is_hiding or isinstance(refused.value, AccessDenied)
    assert await count(identities) == before


@each_case
async def test_a_rehearsal_tells_whether_it_may_be_done_and_does_nothing(
    case: Case, identities: Identities, admin: Caller, root: Caller
) -> None:
    who = await given(case, identities, admin, root)
    nobody = caller_for((await create_principal(identities, ROOT, NewPrincipal("nobody"))).principal)
    before = await count(identities)

    with pytest.raises(Rehearsed):
        await case.act(identities, with_key(who, is_repeat=True, is_rehearsal=True))
    with pytest.raises(AccessDenied):
        await case.act(identities, with_key(nobody, is_repeat=True, is_rehearsal=True))

    assert await count(identities) == before


@each_case
async def test_a_repeated_request_that_was_refused_stays_refused_for_the_attempt_before_it(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    """I77. Or the client would be told that it failed, and it would be done all the same."""
    await do(case.in_the_way, identities)
    who = await caller_of(case, identities, admin, root)
    before = await count(identities)

    repeated = with_key(who, is_repeat=True)
    with pytest.raises(CynosureError) as refused:
        await case.act(elsewhere, repeated)
    assert key_of(repeated).is_committed
    assert await count(identities) == before + 1

    await do(case.out_of_the_way or case.given, identities)
    before = await count(identities)
    with pytest.raises(Refused) as told:
        await case.act(identities, with_key(who))

    assert told.value.answer == describe_refusal(refused.value)
    assert await count(identities) == before


SHOWING = [
    case for case in CASES if case.module in {"create_principal", "rotate_credentials", "reset_credentials"}
]
each_showing = pytest.mark.parametrize("case", SHOWING, ids=lambda case: case.module)


@each_showing
async def test_a_secret_that_is_shown_again_is_the_one_that_is_good(
    case: Case, identities: Identities, elsewhere: Identities, admin: Caller, root: Caller
) -> None:
    """Whoever lost the first answer would else hold a principal that nobody can be."""
    who = await given(case, identities, admin, root)
    first = await case.act(identities, with_key(who))

    again = await case.act(elsewhere, with_key(who, is_repeat=True))

    assert isinstance(first, PrincipalWithCredentials)
    assert isinstance(again, PrincipalWithCredentials)
    secret = again.credentials.client_secret
    assert secret.reveal() == first.credentials.client_secret.reveal()
    found = await find_client(elsewhere.persistence, DEFAULT_REALM, again.credentials.client_id)
    assert found is not None
    assert elsewhere.hasher.find_match(secret, found.secrets) is not None


@each_showing
async def test_neither_a_secret_nor_the_key_that_seals_it_is_in_anything_written(
    case: Case,
    identities: Identities,
    elsewhere: Identities,
    admin: Caller,
    root: Caller,
    shared_backend: SharedBackend,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I21, I35, I78: also not compressed, and not in what an attempt prints as."""
    caplog.set_level(logging.DEBUG)
    who = await given(case, identities, admin, root)
    attempts = [with_key(who), with_key(who, is_repeat=True)]
    shown = [await case.act(identities, attempts[0]), await case.act(elsewhere, attempts[1])]
    known = KnownSecrets()
    known.add(KEY_TEXT, kind="an Idempotency-Key")
    for each in shown:
        assert isinstance(each, PrincipalWithCredentials)
        known.add(each.credentials.client_secret.reveal(), client_id=each.credentials.client_id)

    written = await read_all(shared_backend)
    written["logs"] = caplog.text.encode()
    written["attempts"] = repr((attempts, shown)).encode()

    assert any(b"principal-cre" in each for each in written.values()), "the feed is in what is searched"
    assert [leak for where, data in written.items() for leak in known.search_bytes(data, where)] == []


@each_showing
async def test_a_receipt_opens_with_its_key_only(
    case: Case, identities: Identities, admin: Caller, root: Caller
) -> None:
    """Who reads the whole store, and even knows which request it was, has no secret."""
    who = await given(case, identities, admin, root)
    await case.act(identities, with_key(who))
    record = (await identities.read(DEFAULT_REALM)).commit.record.requests[0]
    data = unpack_receipt(record.receipt).data

    assert key_of(with_key(who)).open(data)
    with pytest.raises(CorruptObject):
        key_of(with_key(who, "another-key")).open(data)


async def read_all(backend: SharedBackend) -> dict[str, bytes]:
    heads = await backend.scan(after=None, limit=100_000)
    rows = [row for row in await backend.fetch([each.key for each in heads]) if row is not None]
    return {str(row.key): row.blob + open_envelope(row.key, row.blob).payload for row in rows}
