"""What is passed on of a remote's credentials: keys for the table's places, to writers, while they last.

Holds I121.
"""

from typing import Any

import pytest
from msgspec import structs

from cynosure.auth.caller import RENEWED_CREDENTIALS
from cynosure.catalog.file_access.giving import load_vended
from cynosure.federation.stages.access import narrow
from cynosure.storage.access.ports import Scope, Vended
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import Far, T

NOW_MS = 1_000
KEYS = {"s3.access-key-id": "a", "s3.secret-access-key": "s", "s3.session-token": "t"}
GOOD = {**KEYS, "s3.session-token-expires-at-ms": "2000"}
SCOPE = Scope((Location.parse("s3://b/t"), Location.parse("s3://b/data/t")), is_writable=True)


@pytest.mark.parametrize("prefix", ["s3://b/t", "s3://b/t/", "s3://b/t/data", "s3a://b/data/t"])
def test_credentials_inside_the_places_of_the_table_are_passed_on(prefix: str) -> None:
    vended = narrow([(prefix, GOOD)], SCOPE, now_ms=NOW_MS)

    assert vended is not None
    assert [dict(each.config) for each in vended.credentials] == [GOOD]
    assert vended.expires_ms == 2_000


@pytest.mark.parametrize(
    "prefix", ["s3://b", "s3://b/", "s3", "", "s3://b/tt", "s3://other/t", "s3://b/t/../u", "gs://b/t", "*"]
)
def test_credentials_for_more_or_for_something_else_are_not(prefix: str) -> None:
    assert narrow([(prefix, GOOD)], SCOPE, now_ms=NOW_MS) is None


@pytest.mark.parametrize("ends", ["999", "1000", "soon", ""])
def test_credentials_that_ended_or_never_end_are_not(ends: str) -> None:
    config = {**KEYS, "s3.session-token-expires-at-ms": ends}

    assert narrow([("s3://b/t", config)], SCOPE, now_ms=NOW_MS) is None
    assert narrow([("s3://b/t", KEYS)], SCOPE, now_ms=NOW_MS) is None


def test_nobody_who_only_reads_gets_them() -> None:
    reading = Scope(SCOPE.locations, is_writable=False)

    assert narrow([("s3://b/t", GOOD)], reading, now_ms=NOW_MS) is None


def test_nothing_but_keys_is_passed_on() -> None:
    more = {
        "s3.endpoint": "https://evil.example",
        "client.refresh-credentials-endpoint": "https://evil.example",
        "s3.signer.uri": "https://evil.example",
        "py-io-impl": "evil",
        "adls.sas-token.account.example": "sas",
    }

    vended = narrow([("s3://b/t", {**GOOD, **more})], SCOPE, now_ms=NOW_MS)

    assert vended is not None
    assert dict(vended.credentials[0].config) == {**GOOD, "adls.sas-token.account.example": "sas"}


@pytest.mark.anyio
@pytest.mark.parametrize("whose", ["remote", "none"])
async def test_where_ours_are_not_given_nobody_gets_them_who_renews_them_either(far: Far, whose: str) -> None:
    class Vending:
        def get(self, scope: Scope, subject: Any) -> Vended:
            return Vended((), 0, NOW_MS)

    renewing = structs.replace(ROOT, capabilities=frozenset({RENEWED_CREDENTIALS}))
    await far.set_properties(credentials=whose)
    gives: Any = Vending()
    far.catalog.storage = structs.replace(far.catalog.storage, vending=gives, scan_vending=gives)

    for caller in (ROOT, renewing):
        assert await load_vended(far.catalog, caller, T, SCOPE) is not None
        assert await load_vended(far.federation.giving(far.catalog), caller, T, SCOPE) is None
