from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.persistence.index import Index, IndexLimits, after, encode_key, prefix_of

KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=4).map(bytes)
CHANGES = st.dictionaries(KEYS, st.binary(max_size=3) | st.none(), max_size=40)
Changes = dict[bytes, bytes | None]


@pytest.mark.anyio
@settings(max_examples=150, deadline=None)
@given(
    spilled=CHANGES,
    buffered=CHANGES,
    prefix=KEYS,
    start=KEYS,
    end=KEYS | st.none(),
    limit=st.integers(1, 20),
)
async def test_a_scan_gives_what_a_sorted_dict_gives(
    make_rows,
    tiny,
    spilled: Changes,
    buffered: Changes,
    prefix: bytes,
    start: bytes,
    end: bytes | None,
    limit: int,
) -> None:
    rows = make_rows()
    index = await rows.apply(Index.EMPTY, spilled, tiny)
    index = await rows.apply(index, buffered, IndexLimits())
    expected = [
        (key, value)
        for key, value in sorted((spilled | buffered).items())
        if value is not None and key.startswith(prefix) and key >= start and (end is None or key < end)
    ]

    page = await index.scan(rows, prefix=prefix, start=start, end=end, limit=limit)
    whole = [
        entry async for chunk in index.chunks(rows, prefix=prefix, start=start, end=end) for entry in chunk
    ]

    assert page == expected[:limit]
    assert whole == expected


@pytest.mark.anyio
async def test_pages_of_one_index_follow_each_other_whatever_is_committed_meanwhile(rows, tiny) -> None:
    names = [encode_key("ns", f"t{at:03d}") for at in range(50)]
    index = await rows.apply(Index.EMPTY, dict.fromkeys([*names, b"other"], b"x"), tiny)
    listed: list[bytes] = []
    start = b""

    current = index
    while page := await index.scan(rows, prefix=prefix_of("ns"), start=start, limit=7):
        listed += [key for key, _ in page]
        start = after(page[-1][0])
        current = await rows.apply(current, {names[len(listed) % 50]: None}, tiny)

    assert listed == names


@pytest.mark.anyio
async def test_a_short_scan_reads_one_path_and_a_long_one_reads_ahead(rows) -> None:
    limits = IndexLimits(buffer_bytes=1, leaf_entries=8, inner_entries=256, root_bytes=40)
    index = await rows.apply(Index.EMPTY, {b"%05d" % at: b"v" for at in range(1000)}, limits)
    rows.loads = rows.requests = 0

    await index.scan(rows, start=b"00500", limit=3)
    short_loads, rows.requests = rows.loads, 0
    await index.scan(rows, limit=1000)

    assert short_loads == index.stats().height == 2
    assert rows.requests < 12


@pytest.mark.anyio
async def test_a_scan_left_early_reads_no_further(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {b"%05d" % at: b"v" for at in range(200)}, tiny)
    rows.loads = 0

    async with aclosing(index.chunks(rows)) as chunks:
        async for _ in chunks:
            break

    assert rows.loads <= index.stats().height
