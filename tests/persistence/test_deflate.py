import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.persistence.deflate import deflate


@given(st.binary(max_size=4096), st.booleans())
def test_what_is_compressed_is_read_by_any_inflater(data: bytes, is_raw: bool) -> None:
    assert (
        zlib.decompress(deflate(data, is_raw=is_raw), -zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS) == data
    )


@pytest.mark.parametrize("size_bytes", [0, 16 * 1024, 16 * 1024 + 1, 1 << 20])
def test_the_change_of_window_loses_nothing(size_bytes: int) -> None:
    data = (b"0123456789abcdef" * 700 + bytes(range(256))) * (size_bytes // 11_456 + 1)

    assert zlib.decompress(deflate(data[:size_bytes])) == data[:size_bytes]


def test_small_text_is_compressed_as_well_as_by_default() -> None:
    text = b"".join(
        b'{"id":%d,"name":"column_%d","type":"string"},' % (at, at * 7919 % 1000) for at in range(60)
    )

    assert len(deflate(text)) <= 1.05 * len(zlib.compress(text, 1))
