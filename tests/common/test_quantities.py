from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.quantities import format_bytes, format_duration, parse_bytes, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30s", timedelta(seconds=30)),
        ("3h", timedelta(hours=3)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(days=7)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("7us", timedelta(microseconds=7)),
        ("PT30M", timedelta(minutes=30)),
        ("P2D", timedelta(days=2)),
        (" PT1H ", timedelta(hours=1)),
    ],
)
def test_a_duration_is_read_in_both_notations(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "s",
        "3 h",
        "3h!",
        "h3",
        "-3h",
        "-PT3H",
        "P1M",
        "P",
        "PT",
        "3y",
        "1e3s",
        "0.1us",
        "9" * 30 + "d",
    ],
)
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(ValueError, match=r"duration|microsecond"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_a_printed_duration_reads_back_as_itself(duration):
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MiB", 64 * 2**20),
        ("64MiB", 64 * 2**20),
        ("10 GB", 10**10),
        ("1.5 KiB", 1536),
        ("4096", 4096),
        ("4096 B", 4096),
        ("0", 0),
    ],
)
def test_a_size_is_read_with_binary_and_decimal_units(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "64M", "-1", "1.5", "0.1 KiB", "1 KiB 2 B", "1e6"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(ValueError, match=r"size|bytes"):
        parse_bytes(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_a_printed_size_reads_back_as_itself(size):
    assert parse_bytes(format_bytes(size)) == size
