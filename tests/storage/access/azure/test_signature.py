"""Shared access signatures.

The expected ones were made with Azure's own library for Python (azure-storage-file-datalake 12.17.0) from the
same key. The emulator checks those of containers, not of directories.
"""

import base64
from urllib.parse import parse_qs

import pytest

from cynosure.common.secrets import Secret
from cynosure.storage.access.azure.signature import DelegationKey, format_time, sign

KEY = DelegationKey(
    object_id="11111111-2222-3333-4444-555555555555",
    tenant_id="66666666-7777-8888-9999-000000000000",
    start="2026-01-01T00:00:00Z",
    expiry="2026-01-01T02:00:00Z",
    service="b",
    version="2023-11-03",
    value=Secret(base64.b64encode(bytes(range(32))).decode()),
    issued_ms=0,
    expires_ms=0,
)
ONE_O_CLOCK_MS = 1_767_229_200_000


def sign_orders(directory: tuple[str, ...] = ("orders",), *, is_writable: bool = False) -> dict[str, str]:
    query = sign(
        KEY,
        account="acct",
        container="lake",
        directory=directory,
        is_writable=is_writable,
        expires_ms=ONE_O_CLOCK_MS,
    )
    return {name: value for name, [value] in parse_qs(query, strict_parsing=True).items()}


@pytest.mark.parametrize(
    ("directory", "is_writable", "signature"),
    [
        ((), False, "NcVCfK+djNFtaufJBa92OzxhQp4FQERb3mybLyKyAVs="),
        (("orders",), False, "G+sNtZ2B8DoFKnooygCoc4TOYxgHGktE0XTry0MQEGk="),
        (("a", "b c", "d%20é+'&"), True, "IrDiSh8RaPf9kh36SSPcvVIGkxfyRzdF7/uCu2ltVCU="),
    ],
)
def test_signatures_are_those_of_azures_own_library(
    directory: tuple[str, ...], is_writable: bool, signature: str
):
    assert sign_orders(directory, is_writable=is_writable)["sig"] == signature


def test_a_directory_is_signed_with_its_depth():
    signed = sign_orders(("a", "b", "c"), is_writable=True)
    del signed["sig"]

    assert signed == {
        "sv": "2025-01-05",
        "spr": "https",
        "se": "2026-01-01T01:00:00Z",
        "sr": "d",
        "sdd": "3",
        "sp": "racwdl",
        "skoid": KEY.object_id,
        "sktid": KEY.tenant_id,
        "skt": KEY.start,
        "ske": KEY.expiry,
        "sks": "b",
        "skv": "2023-11-03",
    }


def test_a_container_has_no_depth_and_reading_no_more_than_reading():
    signed = sign_orders(())

    assert signed["sr"] == "c"
    assert signed["sp"] == "rl"
    assert "sdd" not in signed


def test_every_part_of_the_place_and_of_the_right_is_signed():
    places = [("orders",), ("orders2",), ("orders", "x"), ("order", "s"), ()]
    signatures = {sign_orders(place, is_writable=way)["sig"] for place in places for way in (False, True)}

    assert len(signatures) == 2 * len(places)


def test_the_query_can_be_put_behind_a_url_as_it_is():
    query = sign(
        KEY,
        account="acct",
        container="lake",
        directory=("a", "b c", "d%20é+'&"),
        is_writable=True,
        expires_ms=ONE_O_CLOCK_MS,
    )

    assert query.isascii()
    assert not set("+/ :#?'\"<>") & set(query)


def test_times_are_whole_seconds_of_the_service():
    assert format_time(ONE_O_CLOCK_MS + 999) == "2026-01-01T01:00:00Z"
