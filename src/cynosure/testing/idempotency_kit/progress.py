"""Requests that are in progress, and many at once."""

import asyncio

from cynosure.testing.idempotency_kit.fixtures import Fixtures
from cynosure.testing.idempotency_kit.world import (
    REPLAYED,
    SCHEMA,
    SLOW,
    all_noted,
    create,
    error_of,
    is_same,
    list_records,
    namespace,
    new_key,
)
from cynosure.testing.small_servers import SmallServers


class Progress(Fixtures):
    """Requests that are in progress, and many at once."""

    async def test_a_request_in_progress_is_waited_for_and_its_outcome_told_to_all(
        self, servers: SmallServers
    ) -> None:
        """I73, I74."""
        first, second = await self.both(servers, **SLOW)
        key = new_key()
        held = first.gate.hold("commit")
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        others = [asyncio.create_task(create(server, key)) for server in (first, second, second)]
        await second.gate.wait_seen("reserve")

        held.let_go.set()
        made, *told = await asyncio.gather(sent, *others)

        assert made.status_code == 200
        assert all(is_same(answer, made) for answer in told)
        assert all(answer.headers[REPLAYED] == "true" for answer in told)

    async def test_a_refusal_in_progress_is_waited_for_as_well(self, servers: SmallServers) -> None:
        """I74."""
        first, second = await self.both(servers, **SLOW)
        await first.http.post(first.namespaces, json=namespace())
        key = new_key()
        held = first.gate.hold("finalize")
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        other = asyncio.create_task(create(second, key))
        await second.gate.wait_seen("reserve")

        held.let_go.set()
        refused, told = await asyncio.gather(sent, other)

        assert refused.status_code == 409
        assert is_same(told, refused)

    async def test_whoever_has_waited_long_enough_is_told_that_it_is_in_progress(
        self, servers: SmallServers
    ) -> None:
        """I73: and a request that takes longer than its lease is not taken over while its server lives."""
        brief = {"idempotency__lease": "2s", "idempotency__wait": "4s"}
        first, second = await self.both(servers, **brief)
        key = new_key()
        held = first.gate.hold("commit")
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()

        told = await asyncio.gather(create(first, key), create(second, key))
        held.let_go.set()
        made = await sent

        assert [error_of(answer) for answer in told] == [(409, "request_in_progress")] * 2
        assert all(int(answer.headers["retry-after"]) > 0 for answer in told)
        assert made.status_code == 200
        assert REPLAYED not in made.headers
        assert is_same(await create(second, key), made)

    async def test_to_a_commit_in_progress_is_an_unknown_outcome(self, servers: SmallServers) -> None:
        """I73, I74: clients take 409 for a refusal of their changes, and delete what they wrote."""
        brief = {"idempotency__lease": "50s", "idempotency__wait": "300ms"}
        first, second = await self.both(servers, **brief)
        await first.http.post(first.namespaces, json=namespace())
        await first.http.post(f"{first.namespaces}/a/tables", json={"name": "t", "schema": SCHEMA})
        commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
        identifier = {"namespace": ["a"], "name": "t"}
        routes = {
            f"{first.namespaces}/a/tables/t": commit,
            f"{first.lake}/transactions/commit": {"table-changes": [{"identifier": identifier, **commit}]},
        }
        before = await list_records(first)
        for path, body in routes.items():
            headers = {"Idempotency-Key": new_key()}
            held = first.gate.hold("commit")
            sent = asyncio.create_task(first.http.post(path, json=body, headers=headers))
            await held.wait_reached()

            told = await second.http.post(path, json=body, headers=headers)
            held.let_go.set()
            made = await sent
            # Until then it is in progress for the second one, which hardly waits.
            await all_noted(first, before)

            assert error_of(told) == (504, "CommitStateUnknownException")
            assert int(told.headers["retry-after"]) > 0
            assert made.is_success
            assert is_same(await second.http.post(path, json=body, headers=headers), made)

    async def test_of_many_with_one_key_at_once_one_has_an_effect_and_all_hear_of_it(
        self, servers: SmallServers
    ) -> None:
        """I73, I74."""
        first, second = await self.both(servers, **SLOW)
        chain = first.chain()
        for number in range(5):
            heads, key = await chain.heads(), new_key()
            body = namespace(f"n{number}")
            answers = await asyncio.gather(*(create(each, key, body) for each in (first, second) * 4))

            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.content for answer in answers}) == 1
            assert sum(REPLAYED not in answer.headers for answer in answers) == 1
            assert (await chain.since(heads)).changes() == {"namespace-created": 1}
