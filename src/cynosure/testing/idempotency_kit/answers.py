"""What is told again."""

from cynosure.testing.idempotency_kit.fixtures import Fixtures
from cynosure.testing.idempotency_kit.world import (
    REPLAYED,
    SCHEMA,
    Side,
    create,
    error_of,
    get_config,
    is_same,
    list_records,
    names,
    namespace,
    new_key,
)
from cynosure.testing.small_servers import SmallServers


class Answers(Fixtures):
    """What is told again."""

    async def test_a_server_that_knows_keys_says_so_and_for_how_long(self, first: Side) -> None:
        """I80."""
        found = await get_config(first)

        assert found["idempotency-key-lifetime"] == "PT30M"

    async def test_a_server_whose_keys_are_turned_off_says_nothing_of_them_and_ignores_the_header(
        self, servers: SmallServers
    ) -> None:
        """I79, I80."""
        first = await self.furnished(await servers.start(idempotency__enabled="false"))
        key = new_key()

        found = await get_config(first)
        made, again = await create(first, key), await create(first, key)
        odd = await create(first, "-no key at all", namespace("b"))

        assert found.get("idempotency-key-lifetime") is None
        assert (made.status_code, again.status_code, odd.status_code) == (200, 409, 200)

    async def test_a_success_is_told_again_and_done_once(self, first: Side, second: Side) -> None:
        """I73, I74."""
        chain, key = first.chain(), new_key()
        heads = await chain.heads()

        made = await create(first, key, namespace(k="v"))
        again = await create(first, key, namespace(k="v"))
        elsewhere = await create(second, key, namespace(k="v"))

        assert made.status_code == 200
        assert REPLAYED not in made.headers
        for answer in (again, elsewhere):
            assert is_same(answer, made)
            assert answer.headers[REPLAYED] == "true"
        assert (await chain.since(heads)).changes() == {"namespace-created": 1}

    async def test_a_success_is_told_again_as_it_was_whatever_happened_since(
        self, first: Side, second: Side
    ) -> None:
        """I74."""
        key = new_key()
        made = await create(first, key, namespace(k="v"))
        await first.http.post(f"{first.namespaces}/a/properties", json={"updates": {"k": "w"}})
        changed = await create(second, key, namespace(k="v"))
        await first.http.delete(f"{first.namespaces}/a")

        gone = await create(second, key, namespace(k="v"))

        assert is_same(changed, made)
        assert is_same(gone, made)
        assert await names(first) == []

    async def test_a_refusal_is_told_again_also_when_its_cause_is_gone(
        self, first: Side, second: Side
    ) -> None:
        """I74, I77."""
        key = new_key()
        await first.http.post(first.namespaces, json=namespace())
        refused = await create(first, key)
        await first.http.delete(f"{first.namespaces}/a")

        again = await create(second, key)

        assert error_of(refused) == (409, "AlreadyExistsException")
        assert is_same(again, refused)
        assert again.headers[REPLAYED] == "true"
        assert await names(first) == []

    async def test_what_commits_nothing_is_told_again_as_well(self, first: Side, second: Side) -> None:
        """I74."""
        await first.http.post(first.namespaces, json=namespace())
        headers = {"Idempotency-Key": new_key()}
        body = {"name": "t", "schema": SCHEMA, "stage-create": True}

        staged = await first.http.post(f"{first.namespaces}/a/tables", json=body, headers=headers)
        again = await second.http.post(f"{first.namespaces}/a/tables", json=body, headers=headers)

        assert staged.status_code == 200
        assert is_same(again, staged)

    async def test_requests_without_a_key_are_none_of_each_others_business(self, first: Side) -> None:
        """I79."""
        known = await list_records(first)
        made = await first.http.post(first.namespaces, json=namespace())
        again = await first.http.post(first.namespaces, json=namespace())

        assert (made.status_code, again.status_code) == (200, 409)
        assert await list_records(first) == known

    async def test_reading_takes_no_notice_of_a_key(self, first: Side) -> None:
        """I79."""
        known = await list_records(first)
        answer = await first.http.get(first.namespaces, headers={"Idempotency-Key": "-not a key"})

        assert answer.status_code == 200
        assert await list_records(first) == known
