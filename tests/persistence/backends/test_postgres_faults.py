"""Real faults of servers, sessions, locks, connections and processes."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cynosure.common.errors import (
    Damaged,
    Misconfigured,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.persistence.spi import Backend, Insert, Swap
from cynosure.testing.backend_kit.samples import (
    REF,
    fetch_ref,
    fetch_row,
    fixed,
    obj_key,
    reference,
    versioned,
)
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, LoseAnswer, executes
from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes

from .postgres_calls import opened, raised
from .private_postgres import PrivatePostgres

pytestmark = pytest.mark.anyio


async def waiting_pid(admin: Any, schema: str) -> int:
    """The session of this store that waits for a lock."""
    while True:
        pid = await admin.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1", f"%{schema}%"
        )
        if pid:
            return int(pid)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def locked_reference(postgres_url: str, schema: str) -> AsyncIterator[None]:
    """Somebody else keeps the row of the reference locked."""
    locker = await asyncpg.connect(postgres_url)
    transaction = locker.transaction()
    await transaction.start()
    await locker.execute(f"SELECT FROM {schema}.refs FOR UPDATE")
    try:
        yield
    finally:
        await transaction.rollback()
        await locker.close()


# --- sessions that end ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
async def test_a_session_ended_during_a_swap_leaves_its_outcome_unknown(
    postgres_backend: Backend, postgres_url: str, schema: str, admin: Any, how: str
) -> None:
    async with locked_reference(postgres_url, schema):
        swap = asyncio.ensure_future(postgres_backend.swap_ref(reference(1), reference(2), [fixed(2)]))
        await admin.execute(f"SELECT {how}({await waiting_pid(admin, schema)})")
        error = await raised(swap)

    assert type(error) is OutcomeUnknown
    assert error.details["sqlstate"] in ("57014", "57P01", "08003")
    # The handle goes on by itself, from the same head.
    assert await postgres_backend.swap_ref(reference(1), reference(3), [fixed(3)])
    assert await postgres_backend.fetch([obj_key(2), obj_key(3)]) == [None, fixed(3)]


async def test_a_row_locked_for_too_long_is_unavailable_and_nothing_is_applied(
    postgres_backend: Backend, postgres_schema_url: str, postgres_url: str, schema: str
) -> None:
    async with opened(f"{postgres_schema_url}&turn_timeout_s=0.2") as hasty:
        async with locked_reference(postgres_url, schema):
            error = await raised(hasty.swap_ref(reference(1), reference(2), [fixed(2)]))
            assert await fetch_ref(postgres_backend) == reference(1)

        assert type(error) is Unavailable
        assert error.fix
        assert await fetch_row(postgres_backend, obj_key(2)) is None
        assert await hasty.swap_ref(reference(1), reference(2), [fixed(2)])


async def test_a_statement_that_takes_too_long_is_unknown_if_it_writes(
    postgres_backend: Backend, postgres_schema_url: str, postgres_url: str, schema: str
) -> None:
    async with opened(f"{postgres_schema_url}&turn_timeout_s=60&command_timeout_s=5") as hasty:
        async with locked_reference(postgres_url, schema):
            error = await raised(hasty.swap_ref(reference(1), reference(2), [fixed(2)]))

        assert type(error) is OutcomeUnknown
        # It may even be applied after this: the lock came free while the cancellation was on its way.
        has_won = await hasty.swap_ref(reference(1), reference(3))
        assert await fetch_ref(hasty) == (reference(3) if has_won else reference(2))


async def test_idle_connections_that_the_server_ended_are_replaced(
    postgres_backend: Backend, admin: Any, schema: str
) -> None:
    await asyncio.gather(*(postgres_backend.write([fixed(id_)]) for id_ in range(1, 9)))

    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE $1 AND pid <> pg_backend_pid()",
        f"%{schema}%",
    )

    assert await postgres_backend.fetch([obj_key(1), obj_key(8)]) == [fixed(1), fixed(8)]
    assert await fetch_ref(postgres_backend) == reference(1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("53100", Unavailable),  # disk full
        ("53200", Unavailable),  # out of memory
        ("40001", Unavailable),  # serialization failure
        ("40P01", Unavailable),  # deadlock
        ("42501", Misconfigured),  # no right to do so
        ("40003", OutcomeUnknown),  # statement completion unknown
        ("58030", OutcomeUnknown),  # input or output failed
        ("XX000", OutcomeUnknown),  # internal error
        ("57014", OutcomeUnknown),  # cancelled
    ],
)
async def test_what_the_server_reports_decides_whether_the_outcome_is_known(
    postgres_backend: Backend, admin: Any, schema: str, code: str, expected: type
) -> None:
    await admin.execute(
        f"""CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = '{code}'; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON {schema}.objects EXECUTE FUNCTION {schema}.fail();"""
    )

    errors = [
        await raised(postgres_backend.swap_ref(reference(1), reference(2), [fixed(2)])),
        await raised(postgres_backend.write([fixed(3)])),
        await raised(postgres_backend.insert(versioned(4, "a"))),
    ]

    assert [type(error) for error in errors] == [expected] * 3
    assert await fetch_ref(postgres_backend) == reference(1)
    assert "as the test wants it" not in "".join(map(str, errors))


async def test_damage_that_the_server_finds_while_reading_is_reported_as_damage(
    postgres_backend: Backend, admin: Any, schema: str
) -> None:
    await admin.execute(
        f"""ALTER TABLE {schema}.refs RENAME TO kept;
            CREATE FUNCTION {schema}.fail() RETURNS bigint LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'bad page' USING ERRCODE = 'XX001'; END $$;
            CREATE VIEW {schema}.refs AS SELECT realm, catalog, name, {schema}.fail() AS head, generation,
            recent, created_us FROM {schema}.kept"""
    )

    assert type(await raised(postgres_backend.fetch_refs([REF]))) is Damaged


# --- connections that break ----------------------------------------------------------------------


async def test_an_answer_lost_after_the_swap_is_unknown_and_the_swap_is_there(
    postgres_backend: Backend, postgres_schema_url: str, fault_proxy: Callable[[str], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy(postgres_schema_url)
    async with opened(proxy.url) as distant:
        assert await fetch_ref(distant) == reference(1)
        rule = proxy.add(LoseAnswer(), when=executes("UPDATE"))

        error = await raised(distant.swap_ref(reference(1), reference(2), [fixed(2)]))
        await rule.wait_done()

        assert type(error) is OutcomeUnknown
        assert await fetch_ref(postgres_backend) == reference(2)
        assert not await distant.swap_ref(reference(1), reference(2), [fixed(2)])


async def test_an_answer_lost_after_many_writes_is_unknown_and_they_are_there(
    postgres_backend: Backend, postgres_schema_url: str, fault_proxy: Callable[[str], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy(postgres_schema_url)
    rows = [versioned(number, "a") for number in range(1, 5)]
    writes = [Insert(row) for row in rows]
    async with opened(proxy.url) as distant:
        assert await fetch_ref(distant) == reference(1)
        rule = proxy.add(LoseAnswer(), when=executes("INSERT INTO"))

        error = await raised(distant.write_each(writes))
        await rule.wait_done()

        assert type(error) is OutcomeUnknown
        assert await postgres_backend.fetch([row.key for row in rows]) == rows
        assert await distant.write_each(writes) == [False] * 4


async def test_a_call_of_many_that_is_refused_at_one_row_has_applied_none(
    postgres_backend: Backend, postgres_url: str, postgres_schema_url: str, schema: str
) -> None:
    await postgres_backend.insert(versioned(5, "a"))
    locker = await asyncpg.connect(postgres_url)
    transaction = locker.transaction()
    await transaction.start()
    await locker.execute(f"SELECT FROM {schema}.objects WHERE id = 5 FOR UPDATE")
    async with opened(f"{postgres_schema_url}&turn_timeout_s=0.2") as impatient:
        error = await raised(
            impatient.write_each([Insert(versioned(1, "a")), Swap(versioned(5, "b"), "a")], is_relaxed=True)
        )
    await transaction.rollback()
    await locker.close()

    assert type(error) is Unavailable
    assert await fetch_row(postgres_backend, versioned(1, "a").key) is None
    assert await fetch_row(postgres_backend, versioned(5, "a").key) == versioned(5, "a")


async def test_a_request_cut_on_its_way_is_unknown_and_nothing_is_there(
    postgres_backend: Backend, postgres_schema_url: str, fault_proxy: Callable[[str], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy(postgres_schema_url)
    async with opened(proxy.url) as distant:
        assert await fetch_ref(distant) == reference(1)
        proxy.add(CutRequest(after_bytes=7), when=executes("UPDATE"))

        error = await raised(distant.swap_ref(reference(1), reference(2), [fixed(2)]))

        assert type(error) is OutcomeUnknown
        assert await distant.swap_ref(reference(1), reference(2), [fixed(2)])


async def test_a_read_whose_answer_is_lost_tries_again(
    postgres_backend: Backend, postgres_schema_url: str, fault_proxy: Callable[[str], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy(postgres_schema_url)
    async with opened(proxy.url) as distant:
        assert await fetch_ref(distant) == reference(1)
        rule = proxy.add(LoseAnswer(), when=executes("generation, recent"))

        found = await fetch_ref(distant)

        assert rule.hits == 1
        assert found == reference(1)


# --- turns of processes that die or stop ---------------------------------------------------------


@pytest.mark.parametrize("how", ["kill9", "sigstop"])
async def test_a_turn_ends_when_its_process_dies_or_stops_answering(
    postgres_schema_url: str, start_store_process: Callable[..., Awaitable[ManagedProcess]], how: str
) -> None:
    key = REF._replace(name="held", catalog="c")
    async with opened(f"{postgres_schema_url}&turn_timeout_s=20") as backend:
        await backend.setup()
        await backend.insert_ref(reference(1, key=key))
        holder = await start_store_process("hold", f"{postgres_schema_url}&turn_timeout_s=1")
        await holder.wait_until(log_ready("holding"))

        getattr(holder, how)()
        hold = backend.hold_ref(key, "commit")
        assert hold is not None
        async with hold as turn:
            assert turn.current == reference(1, key=key)


async def test_a_turn_that_does_not_come_in_time_is_unavailable(
    postgres_backend: Backend, postgres_schema_url: str
) -> None:
    async with opened(f"{postgres_schema_url}&turn_timeout_s=0.2") as hasty:
        holding, waiting = postgres_backend.hold_ref(REF, "commit"), hasty.hold_ref(REF, "commit")
        assert holding is not None
        assert waiting is not None

        async with holding:
            error = await raised(waiting.__aenter__())

        assert type(error) is Unavailable


async def test_a_holder_that_does_nothing_for_too_long_loses_its_turn(
    postgres_backend: Backend, postgres_schema_url: str
) -> None:
    async with opened(f"{postgres_schema_url}&turn_timeout_s=1") as slow:
        hold = slow.hold_ref(REF, "commit")
        assert hold is not None
        async with hold:
            next_hold = postgres_backend.hold_ref(REF, "commit")
            assert next_hold is not None
            async with next_hold as next_turn:
                assert next_turn.current == reference(1)

        # Leaving a turn that the server has ended is no error, and the backend goes on with other sessions.
        assert await fetch_ref(slow) == reference(1)


async def test_what_a_killed_process_was_acknowledged_is_there(
    postgres_schema_url: str,
    start_store_process: Callable[..., Awaitable[ManagedProcess]],
    check_acknowledged: Callable[[Backend, ManagedProcess], Awaitable[int]],
) -> None:
    async with opened(postgres_schema_url) as backend:
        await backend.setup()
        process = await start_store_process("move", postgres_schema_url, 8)
        await process.wait_until(log_ready("r0 12\n"))
        process.kill9()

        assert await check_acknowledged(backend, process) >= 11


async def test_what_a_killed_process_was_acknowledged_relaxed_is_there(
    postgres_schema_url: str,
    start_store_process: Callable[..., Awaitable[ManagedProcess]],
    check_relaxed: Callable[[Backend, ManagedProcess], Awaitable[int]],
) -> None:
    async with opened(postgres_schema_url) as backend:
        await backend.setup()
        process = await start_store_process("relax", postgres_schema_url, 4)
        await process.wait_until(log_ready("w0 40\n"))
        process.kill9()

        assert await check_relaxed(backend, process) >= 40


# --- a server that stops -------------------------------------------------------------------------


@pytest.fixture
def private_postgres(processes: Processes) -> Iterator[PrivatePostgres]:
    # Not pytest's own directory, which only root may enter.
    directory = Path(tempfile.mkdtemp(prefix="cynosure-test-"))
    server = PrivatePostgres(directory, processes.reserve_port())
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(directory)


async def is_flushed_after(backend: Backend, number: int, *, is_relaxed: bool) -> bool:
    """Whether the server's log was on disk right after conditional writes were acknowledged."""
    rows = [versioned(10 * number + at, "a") for at in range(1 + number % 2)]
    assert all(await backend.write_each([Insert(row) for row in rows], is_relaxed=is_relaxed))
    sessions = backend._sessions  # type: ignore[attr-defined]
    ((is_flushed, setting),) = await sessions.read(
        "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn(),"
        " current_setting('synchronous_commit')"
    )
    assert setting == "on"  # Relaxed was the transaction, not the session.
    return bool(is_flushed)


@pytest.mark.postgres
async def test_a_handle_lives_through_stops_crashes_and_starts_of_the_server(
    private_postgres: PrivatePostgres,
) -> None:
    async with opened(private_postgres.url) as backend:
        await backend.setup()
        await backend.insert_ref(reference(1))
        head = 1
        for how in ("fast", "immediate"):
            assert await backend.swap_ref(reference(head), reference(head + 1), [fixed(head + 1)])
            head += 1

            await asyncio.to_thread(private_postgres.stop, how)
            down = [
                await raised(backend.fetch_refs([REF])),
                await raised(backend.swap_ref(reference(head), reference(99))),
            ]
            await asyncio.to_thread(private_postgres.start)

            assert [type(error) for error in down] == [Unavailable, Unavailable]
            assert await fetch_ref(backend) == reference(head)
            assert await fetch_row(backend, obj_key(head)) == fixed(head)
        assert await backend.swap_ref(reference(head), reference(head + 1))

        # While it is here: a server that acknowledges before its log is on disk is told not to.
        admin = await asyncpg.connect(private_postgres.url)
        await admin.execute("ALTER SYSTEM SET synchronous_commit = off")
        await admin.execute('CREATE DATABASE "postgres-latin" ENCODING LATIN1 TEMPLATE template0')
        await admin.execute("SELECT pg_reload_conf()")
        await admin.close()
        async with opened(private_postgres.url) as careless:
            await careless.fetch_refs([REF])
            sessions = careless._sessions  # type: ignore[attr-defined]
            connection = await sessions.acquire()
            assert await connection.fetchval("SHOW synchronous_commit") == "on"
            sessions.release(connection, is_sound=True)

        # And the only one on which nobody else writes.
        async with opened(private_postgres.url) as alone:
            flushed = [await is_flushed_after(alone, number, is_relaxed=False) for number in range(50)]
            relaxed = [await is_flushed_after(alone, number, is_relaxed=True) for number in range(50, 100)]
        assert all(flushed)
        # The server flushes by itself now and then.
        assert relaxed.count(False) > 25

    async with opened(f"{private_postgres.url}-latin") as latin:
        error = await raised(latin.setup())
    assert type(error) is Misconfigured
    assert "UTF8" in error.fix
