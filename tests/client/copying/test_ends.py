"""What a copy asks of the catalog that gets it: a place that stays its own however long it takes."""

from typing import Any

import pytest

from cynosure.client.copying.ends import End
from cynosure.client.copying.placing import place_copy
from cynosure.common.errors import BadInput, Expired, Forbidden, NotFound

pytestmark = pytest.mark.anyio

UUID = "0F2E8F6E-0000-4000-8000-000000000001"
PATH = ("eu", "orders")


class Reply:
    def __init__(self, body: Any) -> None:
        self.body = body

    def decode(self, body_type: type[Any]) -> Any:
        import msgspec

        return msgspec.convert(self.body, body_type)


class Scripted:
    """A server that says what it is told to; which requests it got."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.staged: list[str] = []
        self.taken: set[str] = set()
        self.refusal: Exception | None = None
        self.refusals = 0

    async def request(self, method: str, path: str, **more: Any) -> Reply:
        word = path.rpartition("/")[2]
        self.asked.append(f"{method} {word}")
        if word in ("credentials", "sign"):
            if self.refusals:
                self.refusals -= 1
                assert self.refusal is not None
                raise self.refusal
            if word == "sign":
                return Reply({"uri": "http://signed", "headers": {}})
            return Reply({"storage-credentials": [{"prefix": "s3://b", "config": {"key": "newer"}}]})
        body = more["body"]
        location = body.get("location", "s3://bucket/eu/orders-18f3")
        if location in self.taken:
            raise Forbidden("The location overlaps with another table's", field="location")
        if "X-Iceberg-Access-Delegation" in (more.get("headers") or {}):
            self.staged.append(location)
        given = [{"prefix": location, "config": {"key": f"of {len(self.staged)}"}}]
        return Reply({"metadata": {"location": location}, "storage-credentials": given})


def make(server: Scripted) -> End:
    return End(server, "ours")  # type: ignore[arg-type]


async def test_the_same_table_gets_the_same_place_again() -> None:
    server = Scripted()
    found = [(await place_copy(make(server), PATH, UUID)).metadata["location"] for _ in range(2)]
    assert found == [f"s3://bucket/eu/orders-{UUID.lower()}"] * 2
    # Asked first without access: nothing is kept of that.
    assert server.staged == found


async def test_a_place_that_another_table_has_is_left_to_it() -> None:
    server, first = Scripted(), f"s3://bucket/eu/orders-{UUID.lower()}"
    server.taken = {first, f"{first}-2"}
    assert (await place_copy(make(server), PATH, UUID)).metadata["location"] == f"{first}-3"
    server.taken |= {f"{first}-{number}" for number in range(3, 10)}
    with pytest.raises(Forbidden, match="overlaps"):
        await place_copy(make(server), PATH, UUID)


async def test_what_a_remote_calls_a_uuid_leads_nowhere_else() -> None:
    server = Scripted()
    location = (await place_copy(make(server), PATH, "../../etc")).metadata["location"]
    assert location.startswith("s3://bucket/eu/orders-")
    assert "/etc" not in location


@pytest.mark.parametrize("refusal", [Expired("too old"), NotFound("no such table")])
async def test_a_place_that_is_kept_no_longer_is_asked_for_again(refusal: Exception) -> None:
    server = Scripted()
    access = (await place_copy(make(server), PATH, UUID)).access
    assert (await access.renew())[0].config == {"key": "newer"}
    server.refusal, server.refusals = refusal, 1

    assert (await access.renew())[0].config == {"key": "of 2"}

    server.refusals = 1
    assert (await access.sign({})).uri == "http://signed"
    assert len(server.staged) == 3


async def test_other_refusals_are_told() -> None:
    server = Scripted()
    access = (await place_copy(make(server), PATH, UUID)).access
    server.refusal, server.refusals = BadInput("wrong", field="x", fix=""), 1
    with pytest.raises(BadInput):
        await access.renew()
    assert len(server.staged) == 1
