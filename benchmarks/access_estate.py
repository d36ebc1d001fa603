"""A catalog with any number of tables, roles and grants, for suites that measure access.

Tables are pointers, because a check asks for no more of a table than its id. Grants are those of other roles:
the caller's own are the same few in every estate, so what is compared is how much there is beside them.

A maintainer must not break: what is measured afterwards is production code on an ordinary store; only the way
in is short.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.synthetic_catalog import identifier_of
from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.auth.entities import CATALOG_ROLE, CatalogRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.rbac.grants import by_role_key, pack_privileges, securable_key
from cynosure.auth.rbac.privileges import Privilege
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.auth.tokens.opened import Tokens, open_tokens
from cynosure.catalog.bulk_import import begin_load
from cynosure.catalog.directory import Directory
from cynosure.catalog.managed.state import POINTER, TablePointer
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.catalog.targets import TableTarget
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.persistence.backends.sqlite.backend import SqliteBackend
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog

CATALOG = "lake"
ASKED = 10
"""Tables that are asked for, the same number in every estate."""
BY_CATALOG, BY_TABLE, WRITTEN = "by-catalog", "by-table", "written"
"""Principals, roles and catalog roles of one name each: with rights on the catalog, with rights on the asked
tables, and that which grants are written to."""
_GRANTS_PER_ROLE = 10
_GRANTED_TABLES = 10_000
_ROLES_AT_ONCE = 200
_NOW_US = 1_900_000_000_000_000


@dataclass(frozen=True, slots=True)
class Estate:
    """An estate, open."""

    catalog: OpenCatalog
    identities: Identities
    tokens: Tokens
    tables: list[Identifier]

    def targets(self) -> list[TableTarget]:
        """The asked tables, for the authorizer."""
        return [self.catalog.table(each) for each in self.tables]

    async def log_in(self, principal: str) -> tuple[str, Caller]:
        """A token of one of the principals, and the caller it stands for."""
        made = (await rotate_credentials(self.identities, ROOT, principal)).credentials
        issued = await self.tokens.issuer.issue_for_secret(
            DEFAULT_REALM, made.client_id, made.client_secret, "PRINCIPAL_ROLE:ALL", "bench"
        )
        token = issued.token.reveal()
        return token, await self.tokens.authenticator.authenticate(token, DEFAULT_REALM)


@asynccontextmanager
async def open_estate(tables: int, grants: int, directory: str = "") -> AsyncIterator[Estate]:
    """An estate on SQLite. In `directory` it is kept: a million tables take minutes."""
    with TemporaryDirectory(prefix="cynosure-bench-") as temporary:
        folder = _folder(directory or temporary, tables, grants)
        if not _is_finished(folder):
            _clear(folder)
            async with _opened(folder, initialise=True) as (directory_, identities):
                await _build(directory_, identities, folder, tables, grants)
            _finish(folder)
        keyring = cache(lambda: open_keyring(KeyringSettings(), folder))
        async with _opened(folder) as (directory_, identities), open_tokens(identities, keyring) as tokens:
            catalog = await directory_.open(DEFAULT_REALM, CATALOG)
            yield Estate(catalog, identities, tokens, _asked(tables))


@asynccontextmanager
async def _opened(folder: Path, *, initialise: bool = False) -> AsyncIterator[tuple[Directory, Identities]]:
    keyring = cache(lambda: open_keyring(KeyringSettings(), folder))
    backend = SqliteBackend(folder / "store.db")
    async with (
        open_persistence_on(backend, initialise=initialise) as persistence,
        directory_on(persistence, folder / "files") as directory,
    ):
        yield (
            directory,
            Identities(
                persistence,
                Standings(persistence),
                directory.shared.authorizer,
                AuthSettings(),
                SecretHasher(keyring),
            ),
        )


def _folder(directory: str, tables: int, grants: int) -> Path:
    return Path(directory).absolute() / f"access-{tables}-{grants}"


def _is_finished(folder: Path) -> bool:
    return (folder / "finished").exists()


def _finish(folder: Path) -> None:
    (folder / "finished").touch()


def _clear(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("store.db*"):
        left.unlink()


def _asked(tables: int) -> list[Identifier]:
    step = max(1, tables // ASKED)
    return [identifier_of(number, tables) for number in range(0, tables, step)][:ASKED]


async def _build(
    directory: Directory, identities: Identities, folder: Path, tables: int, grants: int
) -> None:
    catalog = await make_catalog(directory, folder / "files", CATALOG)
    securables = await _fill_tables(catalog, folder, tables)
    for name in (BY_CATALOG, BY_TABLE, WRITTEN):
        await create_principal(identities, ROOT, NewPrincipal(name))
        await create_principal_role(identities, ROOT, NewPrincipalRole(name))
        await assign_principal_role(identities, ROOT, name, name)
        await create_catalog_role(catalog, ROOT, name, {})
        await assign_catalog_role(catalog, ROOT, name, name)
    read = Privilege.TABLE_READ_DATA
    await grant_privilege(catalog, ROOT, BY_CATALOG, Grant(kind="catalog", privilege=read))
    for table in _asked(tables):
        grant = Grant(kind="table", privilege=read, namespace=table.namespace, name=table.name)
        await grant_privilege(catalog, ROOT, BY_TABLE, grant)
    await _fill_grants(catalog.shared.persistence, catalog, securables, grants)


async def _fill_tables(catalog: OpenCatalog, folder: Path, total: int) -> list[ObjId]:
    """Put tables into the empty catalog; some of their ids."""
    with TemporaryDirectory(dir=folder) as sorting:
        load = await begin_load(catalog, Path(sorting))
        securables: list[ObjId] = []
        for number in range(total):
            table, stable_id = identifier_of(number, total), load.next_id()
            location = catalog.base.child(*table.namespace, table.name)
            pointer = TablePointer(stable_id, _NOW_US, f"{location.text}/metadata/0.json", location.text)
            await load.add(table, stable_id, location, [NewObject(POINTER, load.next_id(), pointer)])
            if len(securables) < _GRANTED_TABLES:
                securables.append(stable_id)
        await load.commit(ROOT)
    return securables


async def _fill_grants(
    persistence: Persistence, catalog: OpenCatalog, securables: list[ObjId], total: int
) -> None:
    """Give roles of others privileges on tables."""
    key = catalog_reference(catalog.realm, catalog.entity.id, "grants")
    packed = pack_privileges(Privilege.TABLE_READ_DATA.bit | Privilege.TABLE_DROP.bit)
    pairs = _pairs(persistence, securables, total)

    async def commit(batch: list[tuple[str, ObjId, ObjId]]) -> None:
        changes: dict[str, dict[bytes, bytes | None]] = {"names": {}, "ids": {}, "grants": {}}
        objects: dict[str, NewObject] = {}
        for name, role, securable in batch:
            if name not in objects:
                entity = CatalogRoleEntity(role, name, _NOW_US, _NOW_US)
                new = objects[name] = NewObject(CATALOG_ROLE, persistence.ids.next(), entity)
                changes["names"][encode_key(name)] = ObjRef(new.id, CATALOG_ROLE.name).pack()
                changes["ids"][encode_id_key(role)] = encode_key(name)
            changes["grants"][securable_key(securable, role)] = packed
            changes["grants"][by_role_key(role, securable)] = packed

        async def prepare(view: View) -> Prepared[None]:
            return Prepared(None, changes, list(objects.values()))

        await commit_part(persistence.committer(key), ROOT, "fill", prepare)

    while batch := list(islice(pairs, _ROLES_AT_ONCE * _GRANTS_PER_ROLE)):
        await commit(batch)


def _pairs(
    persistence: Persistence, securables: list[ObjId], total: int
) -> Iterator[tuple[str, ObjId, ObjId]]:
    role = ObjId(0)
    for number in range(total):
        if number % _GRANTS_PER_ROLE == 0:
            role = persistence.ids.next()
        yield f"role-{number // _GRANTS_PER_ROLE}", role, securables[number * 7 % len(securables)]
