"""The bytes of every stored type, as each version wrote them: still readable, and written the same."""

from pathlib import Path

import pytest

from cynosure.auth.object_types import OBJECT_TYPES as AUTH_TYPES
from cynosure.catalog.object_types import OBJECT_TYPES as CATALOG_TYPES
from cynosure.delegation.object_types import OBJECT_TYPES as DELEGATION_TYPES
from cynosure.idempotency.object_types import OBJECT_TYPES as IDEMPOTENCY_TYPES
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.objects import seal, unseal
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId

from .values import GOLDEN, RUNS

FILES = Path(__file__).parent / "golden" / "types"


@pytest.mark.parametrize("name", GOLDEN)
def test_old_bytes_decode_to_their_value_and_the_value_encodes_to_them(name: str) -> None:
    """I20."""
    golden = GOLDEN[name]
    stored = (FILES / f"{name}-v{golden.type.version}.bin").read_bytes()
    key = ObjKey(RealmId("r"), CatalogId("c"), golden.type.name, ObjId(1))

    value, _ = unseal(golden.type, key, stored)

    assert golden.read(value) == golden.read(golden.value)
    assert seal(golden.type, value).hex() == stored.hex()
    assert seal(golden.type, golden.value).hex() == stored.hex()


def test_every_file_of_an_earlier_version_still_decodes() -> None:
    """I20."""
    for path in FILES.iterdir():
        name = path.stem.rpartition("-v")[0]
        golden = GOLDEN[name]
        key = ObjKey(RealmId("r"), CatalogId("c"), golden.type.name, ObjId(1))

        unseal(golden.type, key, path.read_bytes())


def test_a_tasks_history_decodes() -> None:
    assert GOLDEN["task"].value.runs() == RUNS


def test_every_stored_type_has_golden_bytes() -> None:
    rooms = (OBJECT_TYPES, AUTH_TYPES, CATALOG_TYPES, DELEGATION_TYPES, IDEMPOTENCY_TYPES)
    stored = {each.name for types in rooms for each in types}
    assert {golden.type.name for golden in GOLDEN.values()} == stored
