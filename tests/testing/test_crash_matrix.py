"""Of the crash matrix: which writes it knows, that orders are carried out once, and what its page shows."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from cynosure.idempotency.record import RECORD, Record
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.objects import seal
from cynosure.persistence.spi import (
    REALM_SCOPE,
    SYSTEM_REALM,
    Backend,
    DeleteIf,
    Insert,
    ObjId,
    ObjKey,
    Row,
    Swap,
)
from cynosure.testing.crash_matrix.halting import HaltingBackend, Order, Orders, name_of
from cynosure.testing.crash_matrix.mutations import MUTATIONS
from cynosure.testing.crash_matrix.table import Result, render
from cynosure.testing.crash_matrix.trial import Step, Verdict
from cynosure.testing.crash_matrix.world import World
from cynosure.testing.small_servers import KeptOpen, SmallServers

pytestmark = pytest.mark.anyio

IN_PROGRESS = Record(
    key_hash="00",
    realm="default",
    method="POST",
    path="/",
    principal="root",
    payload_hash="00",
    created_us=1,
    updated_us=1,
    expires_us=2,
)


def row(**changes: Any) -> Row:
    key = ObjKey(SYSTEM_REALM, REALM_SCOPE, RECORD.name, ObjId(1))
    return Row(key, seal(RECORD, structs.replace(IN_PROGRESS, **changes)), "token")


def test_writes_of_a_record_have_the_names_of_what_they_are_to_its_request() -> None:
    finalized = row(state="FINALIZED")

    assert name_of(Insert(row())) == "reserve"
    assert name_of(Swap(finalized, "old")) == "finalize"
    assert name_of(Swap(row(attempt=2), "old")) == ""
    assert name_of(DeleteIf(finalized.key, "old")) == ""
    assert name_of(Insert(row()._replace(key=row().key._replace(type="another")))) == ""


async def test_without_an_order_for_it_a_write_passes_and_is_only_noted(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    backend = HaltingBackend(MemoryBackend(), orders)
    await backend.setup()

    await backend.insert(row())
    assert orders.seen() == []
    orders.give(Order("watch"))
    await backend.swap(row(state="FINALIZED"), "token")

    assert orders.seen() == ["finalize"]
    assert not orders.is_carried_out


def test_an_order_is_carried_out_once(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.give(Order("stop", "after", "commit"))
    found = orders.find()

    orders.begin()

    assert found == Order("stop", "after", "commit")
    assert orders.find() is None
    assert orders.is_carried_out


async def test_there_is_one_of_each_kind_of_request_that_takes_a_key(tmp_path: Path) -> None:
    memory = cast(Backend, KeptOpen(MemoryBackend()))
    async with SmallServers(lambda: memory, tmp_path) as servers:
        server = await servers.start()
        world = World(server.http, tmp_path)
        await world.furnish()
        calls = [await prepare(world) for prepare in MUTATIONS.values()]

    missing = {route.operation_id for route in server.routes if route.is_keyed}
    for route in server.routes:
        pattern = re.compile(re.sub(r"\{[^}]+\}", "[^/?]+", route.path) + r"(\?.*)?")
        if any(route.method == call.method and pattern.fullmatch(call.path) for call in calls):
            missing.discard(route.operation_id)
    assert missing == set()


def test_the_page_shows_what_was_done_told_and_wrong() -> None:
    found = Verdict(200, is_replayed=True, first="nothing", problems=())
    done = Verdict(200, is_replayed=False, first="504", problems=())
    wrong = Verdict(200, is_replayed=False, first="200", problems=("committed 2 times",))
    after, before = Step("after", "commit"), Step("before", "commit")

    page = render(
        [
            Result("SQLite", "create table", "kill", after, found),
            Result("SQLite", "create table", "stop", before, done),
            Result("SQLite", "drop table", "stop", before, wrong),
            Result("SQLite", "drop table", "stop", Step("before", "part 1"), done),
        ]
    )

    assert "4 trials, 1 of them with something wrong." in page
    assert "| create table |  |  |  | found, none |  |  |  |" in page
    assert "| create table |  |  | did, 504 |  |  |  |  |" in page
    assert "| drop table |  |  | **WRONG** |  |  |  | 1: did, 504 |" in page
    assert "- SQLite, drop table, stop before commit: committed 2 times" in page
