"""Records of what was seen: they are stored, and read by every later version."""

import pytest

from cynosure.federation.mirror.seen import INDEX, Seen, find_seen, is_same, noting, uuid_key
from cynosure.federation.remote import Tag
from tests.federation.seen_world import Far, T

pytestmark = pytest.mark.anyio

GOLDEN = bytes.fromhex(
    "9483b16d657461646174615f6c6f636174696f6ea173a465746167a165a776657273696f6ec0a175cd03e8c2"
)
SEEN = Seen(Tag("s", "e"), "u", 1_000)


def test_a_record_has_the_bytes_that_it_always_had() -> None:
    assert noting(b"key", SEEN) == {INDEX: {b"key": GOLDEN, uuid_key("u"): b"key"}}


async def test_a_record_is_read_as_it_was_written(far: Far) -> None:
    far.put()
    await far.see()
    key = b"".join(k for k, _ in await (await far.catalog.read()).scan(INDEX, limit=1))

    found = await find_seen(await far.catalog.read(), key)

    assert found is not None
    assert found.tag == far.remote.tables[T].tag


def test_another_uuid_takes_the_place_of_the_one_before() -> None:
    entries = noting(b"key", SEEN, Seen(Tag(), "before"))[INDEX]

    assert entries[uuid_key("before")] is None
    assert entries[uuid_key("u")] == b"key"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Tag("a", "1"), Tag("b", "1"), True),
        (Tag("a", "1"), Tag("a", "2"), False),
        (Tag("a", "1"), Tag("a"), True),
        (Tag("a"), Tag("b"), False),
        (Tag("a", version="1"), Tag("a", version="2"), False),
    ],
)
def test_entity_tags_are_compared_alone_where_there_are_two(one: Tag, other: Tag, expected: bool) -> None:
    assert is_same(one, other) is expected
