"""Which requests are the same, and which share a key they must not share."""

import asyncio

import httpx

from cynosure.testing.idempotency_kit.fixtures import Fixtures
from cynosure.testing.idempotency_kit.world import (
    REPLAYED,
    Side,
    create,
    error_of,
    is_same,
    list_records,
    lose_records,
    names,
    namespace,
    new_key,
)


class Payloads(Fixtures):
    """Which requests are the same, and which share a key they must not share."""

    async def test_another_payload_is_refused_and_does_nothing(self, first: Side, second: Side) -> None:
        """I75."""
        key = new_key()
        made = await create(first, key)

        refused = [await create(server, key, namespace("b")) for server in (first, second)]

        assert [error_of(answer) for answer in refused] == [(422, "idempotency_key_conflict")] * 2
        assert await names(first) == ["a"]
        assert is_same(await create(second, key), made)

    async def test_another_payload_is_refused_while_the_first_is_in_progress(
        self, first: Side, second: Side
    ) -> None:
        """I75."""
        key = new_key()
        held = first.gate.hold("commit")
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()

        refused = [await create(server, key, namespace("b")) for server in (first, second)]
        held.let_go.set()

        assert [error_of(answer) for answer in refused] == [(422, "idempotency_key_conflict")] * 2
        assert (await sent).status_code == 200

    async def test_a_key_is_known_from_the_chain_when_its_record_is_lost(
        self, first: Side, second: Side
    ) -> None:
        """I73, I74, I75."""
        key = new_key()
        made = await create(first, key)
        await lose_records(first)
        told = await create(second, key)
        await lose_records(first)
        refused = await create(second, key, namespace("b"))
        await lose_records(first)
        told_again = await create(first, key)

        assert is_same(told, made)
        assert told.headers[REPLAYED] == "true"
        assert error_of(refused) == (422, "idempotency_key_conflict")
        assert is_same(told_again, made)
        assert await names(first) == ["a"]

    async def test_a_key_belongs_to_one_method_and_path(self, first: Side) -> None:
        """I73."""
        key = new_key()
        headers = {"Idempotency-Key": key}

        made = await create(first, key)
        updated = await first.http.post(
            f"{first.namespaces}/a/properties", json={"updates": {"k": "v"}}, headers=headers
        )
        dropped = await first.http.delete(f"{first.namespaces}/a", headers=headers)

        assert [each.status_code for each in (made, updated, dropped)] == [200, 200, 204]

    async def test_what_is_no_key_is_refused_before_anything_is_done(self, first: Side) -> None:
        """I73."""
        known = await list_records(first)
        for key in ("", "-a", "_a", ".a", "a b", "ä", "a" * 256, "a\tb", "a/b", "a,b"):
            raw = httpx.Headers([(b"Idempotency-Key", key.encode())])
            answer = await first.http.post(first.namespaces, json=namespace(), headers=raw)

            assert answer.status_code == 400, key
        assert await names(first) == []
        assert await list_records(first) == known

    async def test_two_keys_in_one_request_are_none(self, first: Side) -> None:
        """I73."""
        twice = httpx.Headers([(b"Idempotency-Key", b"a"), (b"Idempotency-Key", b"b")])

        answer = await first.http.post(first.namespaces, json=namespace(), headers=twice)

        assert answer.status_code == 400
        assert await names(first) == []

    async def test_what_is_a_key_counts(self, first: Side) -> None:
        """I73."""
        for number, key in enumerate(("a", "0", "a" * 255, "A-b_c.d")):
            body = namespace(f"n{number}")
            made, again = await create(first, key, body), await create(first, key, body)

            assert made.status_code == 200, key
            assert again.headers[REPLAYED] == "true", key

    async def test_the_same_payload_in_another_spelling_is_the_same(self, first: Side) -> None:
        """I75."""
        key = new_key()
        made = await create(first, key, namespace(x="1", y="é"))
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}

        for spelled in (
            b'{"properties":{"y":"\\u00e9","x":"1"},"namespace":["a"]}',
            b' {\n"namespace" : [ "a" ], "properties":{ "x":"1" ,"y":"\xc3\xa9"} } ',
        ):
            again = await first.http.post(first.namespaces, content=spelled, headers=headers)

            assert is_same(again, made), spelled
            assert again.headers[REPLAYED] == "true"

    async def test_the_same_path_in_another_spelling_is_the_same(self, first: Side) -> None:
        """I73."""
        headers = {"Idempotency-Key": new_key()}
        await first.http.post(first.namespaces, json=namespace())
        body = {"updates": {"k": "v"}}

        made = await first.http.post(f"{first.namespaces}/a/properties", json=body, headers=headers)
        again = await first.http.post(f"{first.namespaces}/%61/properties", json=body, headers=headers)

        assert is_same(again, made)
        assert again.headers[REPLAYED] == "true"
