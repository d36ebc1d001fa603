"""Keys, rows and references for tests."""

from collections.abc import AsyncIterator, Sequence

from cynosure.persistence.spi import (
    Backend,
    CatalogId,
    ObjId,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
)

REALM = RealmId("default")
CATALOG = CatalogId("c-1")
REF = RefKey(REALM, CATALOG, "main")


def obj_key(id_: int, type_: str = "node", catalog: str = CATALOG, realm: str = REALM) -> ObjKey:
    """An object's key."""
    return ObjKey(RealmId(realm), CatalogId(catalog), type_, ObjId(id_))


def fixed(id_: int, blob: bytes = b"blob", type_: str = "node") -> Row:
    """An immutable row."""
    return Row(obj_key(id_, type_), blob, "", 1_000_000 + id_ % 1000)


def versioned(id_: int, token: str, blob: bytes = b"blob", created_us: int = 7) -> Row:
    """A conditionally written row."""
    return Row(obj_key(id_, "lease"), blob, token, created_us)


def reference(head: int, generation: int = 0, recent: tuple[int, ...] = (), key: RefKey = REF) -> Reference:
    """A reference."""
    return Reference(key, ObjId(head), generation, tuple(map(ObjId, recent)), 5)


async def pages(backend: Backend, limit: int) -> AsyncIterator[list[RowHead]]:
    """All pages of a scan."""
    after = None
    while page := await backend.scan(after=after, limit=limit):
        yield page
        after = page[-1].key


async def scan_all(backend: Backend, limit: int = 50) -> list[RowHead]:
    """All row heads."""
    return [head async for page in pages(backend, limit) for head in page]


async def fetch_ref(backend: Backend, key: RefKey = REF) -> Reference | None:
    """One reference."""
    (found,) = await backend.fetch_refs([key])
    return found


async def fetch_refs_soon(backend: Backend, keys: Sequence[RefKey]) -> list[Reference | None]:
    """References, at once where the backend can."""
    found = backend.fetch_refs_now(keys)
    return await backend.fetch_refs(keys) if found is None else found


async def fetch_row(backend: Backend, key: ObjKey) -> Row | None:
    """One row."""
    (found,) = await backend.fetch([key])
    return found
