"""Catalogs, roles and grants under an Idempotency-Key: done once, answered as at first, steps completed.

Every operation has a row in `CASES`. Requests are repeated on another server than that of the first attempt,
which may be dead.
"""

import asyncio
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.committing import find_recalled
from cynosure.auth.entities import CATALOG_ADMIN, SERVICE_ADMIN
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.rbac.grants import GRANTS
from cynosure.auth.request_key import Overtaken, Refused, Rehearsed
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog import roles
from cynosure.catalog.closing import close
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.errors import CatalogNotEmpty, NoSuchCatalog
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations import create_catalog as creating
from cynosure.catalog.operations import drop_catalog as dropping
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.roles import delete_catalog_role as deleting
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.list_assignees import list_assignees
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.update_catalog_role import update_catalog_role
from cynosure.common.errors import CynosureError, KeyReused, NotFound, Unavailable
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.listing import scan_all
from cynosure.persistence.references import CATALOG_REFERENCES, DEFAULT_REALM, catalog_reference
from cynosure.persistence.spi import RefKey
from cynosure.storage.config import FileStorage
from cynosure.testing.small_access import P, People, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog
from cynosure.testing.small_keys import describe_refusal, key_of, with_key
from cynosure.testing.small_realm import SharedBackend
from tests.catalog.tables import T, make

pytestmark = pytest.mark.anyio

NS = ("ns",)
TABLE_GRANT = on_table(T, P.TABLE_READ_DATA)[0]


class Server(NamedTuple):
    """The catalogs of a store, as one server has them."""

    directory: Directory
    people: People
    folder: Path
    backend: SharedBackend

    async def lake(self) -> OpenCatalog:
        """The catalog that is there from the beginning."""
        return await self.directory.open(DEFAULT_REALM, "lake")

    async def heads(self) -> dict[RefKey, int]:
        """What the store holds: the same heads, the same content."""
        return {ref.key: ref.head for ref in await self.backend.list_refs()}


@asynccontextmanager
async def open_server(
    backend: SharedBackend, folder: Path, access: AuthSettings | None = None
) -> AsyncIterator[Server]:
    async with (
        open_persistence_on(backend, initialise=True) as persistence,
        directory_on(persistence, folder, access=access) as directory,
    ):
        yield Server(directory, People(directory), folder, backend)


Step = Callable[[Server], Awaitable[object]]
Act = Callable[[Server, Caller], Awaitable[object]]


class Case(NamedTuple):
    """An operation, and what surrounds it in these tests."""

    module: str
    act: Act
    given: tuple[Step, ...]
    """Without these it is refused."""
    later: tuple[Step, ...]
    """What happens to the same things afterwards."""
    in_the_way: tuple[Step, ...] = ()
    """Instead of `given`: makes it be refused. Left out: nothing is there yet."""
    out_of_the_way: tuple[Step, ...] = ()
    reference: str = "grants"
    """Which one has the key: `grants` of the catalog, or the realm's `catalogs`."""


def new_catalog(server: Server, name: str = "new", **fields: object) -> NewCatalog:
    location = f"file://{server.folder}/{name}"
    wanted = {"name": name, "base_location": location, "storage": FileStorage(allowed_locations=(location,))}
    return NewCatalog(**{**wanted, **fields})  # type: ignore[arg-type]


async def make_new(server: Server) -> None:
    await create_catalog(server.directory, ROOT, new_catalog(server))


async def make_new_with_content(server: Server) -> None:
    await make_new(server)
    await create_namespace(await server.directory.open(DEFAULT_REALM, "new"), ROOT, NS, {})


async def empty_new(server: Server) -> None:
    await drop_namespace(await server.directory.open(DEFAULT_REALM, "new"), ROOT, NS)


async def change_new(server: Server) -> None:
    await update_catalog(server.directory, ROOT, "new", CatalogUpdate(set_properties={"now": "else"}))


async def drop_new(server: Server) -> None:
    await drop_catalog(server.directory, ROOT, "new")


async def make_reader(server: Server) -> None:
    await create_catalog_role(await server.lake(), ROOT, "reader", {})


async def change_reader(server: Server) -> None:
    catalog = await server.lake()
    now = await load_catalog_role(catalog, ROOT, "reader")
    await update_catalog_role(catalog, ROOT, "reader", now.version, {"now": "else"})


async def drop_reader(server: Server) -> None:
    await delete_catalog_role(await server.lake(), ROOT, "reader")


async def make_team(server: Server) -> None:
    await create_principal_role(server.people.identities, ROOT, NewPrincipalRole("team"))


async def drop_team(server: Server) -> None:
    await delete_principal_role(server.people.identities, ROOT, "team")


async def assign_reader(server: Server) -> None:
    await assign_catalog_role(await server.lake(), ROOT, "reader", "team")


async def grant_table(server: Server) -> None:
    await grant_privilege(await server.lake(), ROOT, "reader", TABLE_GRANT)


async def revoke_table(server: Server) -> None:
    await revoke_privilege(await server.lake(), ROOT, "reader", TABLE_GRANT)


async def drop_t(server: Server) -> None:
    await drop_table(await server.lake(), ROOT, T)


async def act_on_role(
    server: Server, who: Caller, act: Callable[..., Awaitable[object]], *more: object
) -> object:
    return await act(await server.lake(), who, *more)


CASES = [
    Case(
        "create_catalog",
        lambda server, who: create_catalog(server.directory, who, new_catalog(server)),
        (),
        (change_new, drop_new),
        in_the_way=(make_new,),
        out_of_the_way=(drop_new,),
        reference="catalogs",
    ),
    Case(
        "update_catalog",
        lambda server, who: update_catalog(
            server.directory, who, "new", CatalogUpdate(set_properties={"a": "b"}, version=1)
        ),
        (make_new,),
        (change_new, drop_new),
        reference="catalogs",
    ),
    Case(
        "drop_catalog",
        lambda server, who: drop_catalog(server.directory, who, "new"),
        (make_new,),
        (make_new_with_content,),
        in_the_way=(make_new_with_content,),
        out_of_the_way=(empty_new,),
        reference="catalogs",
    ),
    Case(
        "create_catalog_role",
        lambda server, who: act_on_role(server, who, create_catalog_role, "reader", {"a": "b"}),
        (),
        (change_reader, drop_reader),
        in_the_way=(make_reader,),
        out_of_the_way=(drop_reader,),
    ),
    Case(
        "update_catalog_role",
        lambda server, who: act_on_role(server, who, update_catalog_role, "reader", 1, {"a": "b"}),
        (make_reader,),
        (change_reader, drop_reader),
    ),
    Case(
        "delete_catalog_role",
        lambda server, who: act_on_role(server, who, delete_catalog_role, "reader"),
        (make_reader, grant_table),
        (make_reader, grant_table),
    ),
    Case(
        "assign_catalog_role",
        lambda server, who: act_on_role(server, who, assign_catalog_role, "reader", "team"),
        (make_reader, make_team),
        (drop_team, drop_reader),
    ),
    Case(
        "revoke_catalog_role",
        lambda server, who: act_on_role(server, who, revoke_catalog_role, "reader", "team"),
        (make_reader, make_team, assign_reader),
        (assign_reader, drop_team),
    ),
    Case(
        "grant_privilege",
        lambda server, who: act_on_role(server, who, grant_privilege, "reader", TABLE_GRANT),
        (make_reader,),
        (revoke_table, drop_t),
    ),
    Case(
        "revoke_privilege",
        lambda server, who: act_on_role(server, who, revoke_privilege, "reader", TABLE_GRANT),
        (make_reader, grant_table),
        (grant_table, drop_t, drop_reader),
    ),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.module)


@pytest.fixture
async def backend() -> SharedBackend:
    return SharedBackend()


@pytest.fixture
async def server(backend: SharedBackend, tmp_path: Path) -> AsyncIterator[Server]:
    async with open_server(backend, tmp_path) as opened:
        await opened.people.root()
        catalog = await make_catalog(opened.directory, tmp_path)
        await create_namespace(catalog, ROOT, NS, {})
        await make(catalog, T)
        yield opened


@pytest.fixture
async def elsewhere(server: Server, backend: SharedBackend, tmp_path: Path) -> AsyncIterator[Server]:
    async with open_server(backend, tmp_path) as opened:
        yield opened


@pytest.fixture
async def admin(server: Server) -> Caller:
    made = await server.people.add("admin")
    await assign_principal_role(server.people.identities, ROOT, "admin", SERVICE_ADMIN)
    return made


async def do(steps: tuple[Step, ...], server: Server) -> None:
    for step in steps:
        await step(server)


async def count(server: Server, case: Case) -> int:
    """Commits so far to the reference that has the key."""
    if case.reference == "catalogs":
        state = await server.directory.read(DEFAULT_REALM)
    else:
        state = (await (await server.lake()).grants.read()).state
    return state.commit.record.sequence


def test_every_operation_on_catalogs_and_their_roles_has_a_case() -> None:
    modules = {each.name for each in pkgutil.iter_modules(roles.__path__)}
    helpers = {"changing", "first_role", "granting", "lookup", "securables", "sweep_grants"}
    changing = {each for each in modules if not each.startswith(("list_", "load_"))} - helpers
    assert {case.module for case in CASES} == changing | {"create_catalog", "update_catalog", "drop_catalog"}


@each_case
async def test_a_repeated_request_is_done_once_and_has_the_first_result(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    """I73, I74."""
    await do(case.given, server)
    before = await count(server, case)

    first = await case.act(server, with_key(admin))
    repeated = with_key(admin, is_repeat=True)
    again = await case.act(elsewhere, repeated)

    assert again == first
    assert key_of(repeated).is_recalled
    assert await count(server, case) == before + 1


@each_case
async def test_the_first_result_is_given_also_after_later_changes(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    await do(case.given, server)
    first = await case.act(server, with_key(admin))
    await do(case.later, server)
    before = await server.heads()

    again = await case.act(elsewhere, with_key(admin, is_repeat=True))

    assert again == first
    assert await server.heads() == before


LOOKING_FIRST = {"create_catalog": creating, "drop_catalog": dropping, "delete_catalog_role": deleting}
"""Operations that look at the state before their commit, where what they did themselves is in their way."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.module not in LOOKING_FIRST], ids=lambda case: case.module
)
async def test_a_first_attempt_that_was_overtaken_by_another_has_its_result(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    await do(case.given, server)
    taken_over = await case.act(elsewhere, with_key(admin, is_repeat=True))
    before = await server.heads()

    paused = with_key(admin)
    result = await case.act(server, paused)

    assert result == taken_over
    assert key_of(paused).is_recalled
    assert await server.heads() == before


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.module in LOOKING_FIRST], ids=lambda case: case.module
)
async def test_an_attempt_that_is_overtaken_on_its_way_is_told_to_ask_again(
    case: Case, server: Server, elsewhere: Server, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that what it did itself is in its way."""
    await do(case.given, server)
    taken_over: list[object] = []

    async def find_before_the_other(*args: Any, **more: Any) -> object:
        found = await find_recalled(*args, **more)
        with monkeypatch.context() as patched:
            patched.setattr(LOOKING_FIRST[case.module], "find_recalled", find_recalled)
            taken_over.append(await case.act(elsewhere, with_key(admin, is_repeat=True)))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(LOOKING_FIRST[case.module], "find_recalled", find_before_the_other)
        with pytest.raises(Overtaken):
            await case.act(server, with_key(admin, is_repeat=True))
    before = await count(server, case)

    assert await case.act(server, with_key(admin, is_repeat=True)) == taken_over[0]
    assert await count(server, case) == before


@each_case
async def test_of_many_attempts_at_once_one_has_an_effect_and_all_have_its_result(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    """I73, I74."""
    await do(case.given, server)
    before = await count(server, case)

    async def attempt(at: Server) -> object:
        while True:
            try:
                return await case.act(at, with_key(admin, is_repeat=True))
            except Overtaken:
                continue

    results = await asyncio.gather(*(attempt(at) for at in [server, elsewhere] * 3))

    assert results == [results[0]] * 6
    assert await count(server, case) == before + 1


@each_case
async def test_a_key_with_another_payload_is_refused(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    """I75."""
    await do(case.given, server)
    await case.act(server, with_key(admin))
    before = await server.heads()

    with pytest.raises(KeyReused):
        await case.act(elsewhere, with_key(admin, payload="something else", is_repeat=True))

    assert await server.heads() == before


@pytest.mark.parametrize("is_hiding", [False, True], ids=["open", "hiding"])
@each_case
async def test_who_may_not_do_it_any_more_is_not_answered_again(
    case: Case, is_hiding: bool, server: Server, backend: SharedBackend, admin: Caller, tmp_path: Path
) -> None:
    """I76. Rights are those of now: nothing is told to whom they were taken from."""
    await do(case.given, server)
    await case.act(server, with_key(admin))
    await revoke_principal_role(server.people.identities, ROOT, "admin", SERVICE_ADMIN)
    before = await server.heads()

    async with open_server(backend, tmp_path, AuthSettings(hide_existence=is_hiding)) as strict:
        with pytest.raises((AccessDenied, NotFound)) as refused:
            await case.act(strict, with_key(admin, is_repeat=True))

    assert isinstance(refused.value, AccessDenied) or isinstance(refused.value.__cause__, AccessDenied)
    assert is_hiding or isinstance(refused.value, AccessDenied)
    assert await server.heads() == before


@each_case
async def test_a_rehearsal_tells_whether_it_may_be_done_and_does_nothing(
    case: Case, server: Server, admin: Caller
) -> None:
    await do(case.given, server)
    nobody = await server.people.add("nobody")
    before = await server.heads()

    with pytest.raises(Rehearsed):
        await case.act(server, with_key(admin, is_repeat=True, is_rehearsal=True))
    with pytest.raises(AccessDenied):
        await case.act(server, with_key(nobody, is_repeat=True, is_rehearsal=True))

    assert await server.heads() == before


@each_case
async def test_a_repeated_request_that_was_refused_stays_refused_for_the_attempt_before_it(
    case: Case, server: Server, elsewhere: Server, admin: Caller
) -> None:
    """I77. Or the client would be told that it failed, and it would be done all the same."""
    await do(case.in_the_way, server)
    before = await count(server, case)

    repeated = with_key(admin, is_repeat=True)
    with pytest.raises(CynosureError) as refused:
        await case.act(elsewhere, repeated)
    assert key_of(repeated).is_committed
    assert await count(server, case) == before + 1

    await do(case.out_of_the_way or case.given, server)
    before = await count(server, case)
    with pytest.raises(Refused) as told:
        await case.act(server, with_key(admin))

    assert told.value.answer == describe_refusal(refused.value)
    assert await count(server, case) == before


# --- steps around the commit ------------------------------------------------------------------------------


async def die(*_: object, **__: object) -> NoReturn:
    raise Unavailable("This process is dead")


async def delete_references(server: Server, catalog: CatalogEntity) -> None:
    """As the repairer does to what no list names, or did not when it looked."""
    for key in references_of(catalog):
        (ref,) = await server.backend.fetch_refs([key])
        assert ref is not None
        assert await server.backend.delete_ref(ref)


def references_of(catalog: CatalogEntity) -> list[RefKey]:
    return [catalog_reference(DEFAULT_REALM, catalog.id, name) for name in CATALOG_REFERENCES]


async def test_a_creation_that_died_after_it_was_listed_is_completed_by_its_repetition(
    server: Server, elsewhere: Server, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_team(server)
    wanted = new_catalog(server, admins=("team",))
    with monkeypatch.context() as patched:
        patched.setattr(creating, "adopt_references", die)
        with pytest.raises(Unavailable):
            await create_catalog(server.directory, with_key(admin), wanted)
    listed = await load_catalog(server.directory, ROOT, "new")
    await delete_references(server, listed)

    repeated = with_key(admin, is_repeat=True)
    created = await create_catalog(elsewhere.directory, repeated, wanted)

    assert key_of(repeated).is_recalled
    assert created == listed
    catalog = await elsewhere.directory.open(DEFAULT_REALM, "new")
    await create_namespace(catalog, ROOT, NS, {})
    users = await list_assignees(catalog, ROOT, CATALOG_ADMIN)
    assert [each.name for each in users.roles] == ["team"]


async def test_a_creation_repeated_after_the_catalog_was_dropped_makes_nothing_of_it_again(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    created = await create_catalog(server.directory, with_key(admin), new_catalog(server))
    await drop_new(server)
    await delete_references(server, created)

    again = await create_catalog(elsewhere.directory, with_key(admin, is_repeat=True), new_catalog(server))

    assert again == created
    assert await server.backend.fetch_refs(references_of(created)) == [None] * len(CATALOG_REFERENCES)


async def test_a_creation_is_answered_also_when_those_it_was_for_are_gone(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    """Somebody can manage the catalog then, as after the start of a server."""
    await make_team(server)
    wanted = new_catalog(server, admins=("team",))
    created = await create_catalog(server.directory, with_key(admin), wanted)
    await drop_team(server)

    assert await create_catalog(elsewhere.directory, with_key(admin, is_repeat=True), wanted) == created

    catalog = await elsewhere.directory.open(DEFAULT_REALM, "new")
    users = await list_assignees(catalog, ROOT, CATALOG_ADMIN)
    assert [each.name for each in users.roles] == [SERVICE_ADMIN]


async def test_a_drop_that_died_half_way_is_done_by_its_repetition(
    server: Server, elsewhere: Server, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_new(server)
    with monkeypatch.context() as patched:
        patched.setattr(Directory, "commit_authorizing", die)
        with pytest.raises(Unavailable):
            await drop_catalog(server.directory, with_key(admin), "new")

    repeated = with_key(admin, is_repeat=True)
    await drop_catalog(elsewhere.directory, repeated, "new")

    assert not key_of(repeated).is_recalled
    with pytest.raises(NoSuchCatalog):
        await load_catalog(elsewhere.directory, ROOT, "new")


async def test_a_paused_drop_leaves_a_catalog_open_whose_drop_was_refused_meanwhile(
    server: Server, elsewhere: Server, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client was told that it is not dropped, and goes on using it."""
    await make_new(server)

    async def close_late(*args: Any, **named: Any) -> None:
        patched.undo()
        await create_namespace(await elsewhere.directory.open(DEFAULT_REALM, "new"), ROOT, NS, {})
        with pytest.raises(CatalogNotEmpty):
            await drop_catalog(elsewhere.directory, with_key(admin, is_repeat=True), "new")
        await empty_new(elsewhere)
        await close(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(dropping, "close", close_late)
        with pytest.raises(Refused):
            await drop_catalog(server.directory, with_key(admin), "new")

    await create_namespace(await elsewhere.directory.open(DEFAULT_REALM, "new"), ROOT, NS, {})


async def test_a_drop_is_answered_again_when_nothing_of_the_catalog_is_left(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    created = await create_catalog(server.directory, ROOT, new_catalog(server))
    await drop_catalog(server.directory, with_key(admin), "new")
    await delete_references(server, created)

    repeated = with_key(admin, is_repeat=True)
    await drop_catalog(elsewhere.directory, repeated, "new")

    assert key_of(repeated).is_recalled


async def test_a_repeated_drop_does_not_drop_a_later_catalog_of_the_same_name(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    await make_new(server)
    await drop_catalog(server.directory, with_key(admin), "new")
    await make_new(server)
    later = await load_catalog(server.directory, ROOT, "new")

    await drop_catalog(elsewhere.directory, with_key(admin, is_repeat=True), "new")

    assert await load_catalog(elsewhere.directory, ROOT, "new") == later
    await create_namespace(await elsewhere.directory.open(DEFAULT_REALM, "new"), ROOT, NS, {})


async def test_a_deletion_of_a_role_that_died_among_its_grants_is_completed_by_its_repetition(
    server: Server, elsewhere: Server, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "MOST_AT_ONCE", 1)
    catalog = await server.lake()
    await make_reader(server)
    for grant in [*on_table(T, P.TABLE_READ_DATA), *on_catalog(P.TABLE_LIST)]:
        await grant_privilege(catalog, ROOT, "reader", grant)
    own = len(await grants_left(server)) - 4
    with monkeypatch.context() as patched:
        patched.setattr(deleting, "remove_grants", die)
        with pytest.raises(Unavailable):
            await delete_catalog_role(catalog, with_key(admin), "reader")
    assert len(await grants_left(server)) == own + 2

    repeated = with_key(admin, is_repeat=True)
    await delete_catalog_role(await elsewhere.lake(), repeated, "reader")

    assert key_of(repeated).is_recalled
    assert len(await grants_left(server)) == own


async def grants_left(server: Server) -> list[tuple[bytes, bytes]]:
    state = (await (await server.lake()).grants.read()).state
    return await scan_all(state, GRANTS, b"")


async def test_a_change_that_reached_more_is_not_answered_to_who_may_only_change_properties(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    """Giving a catalog another location takes the right to create catalogs; so does hearing of it again."""
    catalog = await server.lake()
    await server.people.join("admin", catalog, *on_catalog(P.CATALOG_WRITE_PROPERTIES))
    more = CatalogUpdate(
        storage=FileStorage(
            allowed_locations=(f"file://{server.folder}/lake", f"file://{server.folder}/more")
        )
    )
    plain = CatalogUpdate(set_properties={"a": "b"})
    await update_catalog(server.directory, with_key(admin, "k1"), "lake", more)
    first = await update_catalog(server.directory, with_key(admin, "k2"), "lake", plain)
    await revoke_principal_role(server.people.identities, ROOT, "admin", SERVICE_ADMIN)

    with pytest.raises(AccessDenied):
        await update_catalog(elsewhere.directory, with_key(admin, "k1", is_repeat=True), "lake", more)

    again = await update_catalog(elsewhere.directory, with_key(admin, "k2", is_repeat=True), "lake", plain)
    assert again == first


async def test_a_grant_on_a_table_that_is_gone_is_answered_again_but_not_made_anew(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    await make_reader(server)
    await grant_privilege(await server.lake(), with_key(admin, "k1"), "reader", TABLE_GRANT)
    await drop_t(server)

    await grant_privilege(
        await elsewhere.lake(), with_key(admin, "k1", is_repeat=True), "reader", TABLE_GRANT
    )

    with pytest.raises(NotFound):
        await grant_privilege(await elsewhere.lake(), with_key(admin, "k2"), "reader", TABLE_GRANT)


async def test_a_repeated_grant_does_not_bring_back_what_was_revoked_since(
    server: Server, elsewhere: Server, admin: Caller
) -> None:
    await make_reader(server)
    grant = on_catalog(P.TABLE_LIST)[0]
    await grant_privilege(await server.lake(), with_key(admin), "reader", grant)
    await revoke_privilege(await server.lake(), ROOT, "reader", grant)

    await grant_privilege(await elsewhere.lake(), with_key(admin, is_repeat=True), "reader", grant)

    assert not (await list_grants(await elsewhere.lake(), ROOT, "reader")).grants


async def test_catalogs_that_cannot_be_dropped_leave_no_mark_of_a_rehearsal(
    server: Server, admin: Caller
) -> None:
    """What is stored for a request that was refused is told again without closing anything."""
    await make_new(server)
    before = await server.heads()

    with pytest.raises(Rehearsed):
        await drop_catalog(server.directory, with_key(admin, is_repeat=True, is_rehearsal=True), "new")

    assert await server.heads() == before
    await create_namespace(await server.directory.open(DEFAULT_REALM, "new"), ROOT, NS, {})
    with pytest.raises(CatalogNotEmpty):
        await drop_catalog(server.directory, with_key(admin), "new")
