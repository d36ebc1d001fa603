"""Names and locations that mean something in a policy document. Promise I56.

CVE-2026-42810: a `*` in a table's name became one in the policy of its credentials. CVE-2026-42811: the same
with a quote, in another provider's language.
"""

import secrets

import httpx
import pytest

from tests.robustness.attacks.storage.lakes import VENDED, Lake, connect_with, error_code, key_of, make_table

pytestmark = pytest.mark.anyio

ODD = (
    "*",
    "ord*",
    "o?d",
    "${aws:username}",
    "${*}",
    "$" + "{s3:prefix}",
    'quote"',
    "quote'",
    '","Effect":"Allow","Resource":"*',
    "back\\slash",
    "new\u2028line",
    "slash/../x",
    "%2e%2e",
    "ünïcode",
    "a b",
    "</Delete>",
)


async def plant(owner: httpx.AsyncClient, lake: Lake, stem: str) -> tuple[str, str]:
    """A table that the odd name would match if it were a pattern; its secret file."""
    made = await make_table(owner, lake, stem, location=f"{lake.base}/{stem}")
    assert made.status_code == 200
    bucket, key = key_of(f"{lake.base}/{stem}/data/secret")
    lake.as_owner().put_object(Bucket=bucket, Key=key, Body=b"secret")
    return bucket, key


async def test_no_name_reaches_beyond_its_own_table(owner: httpx.AsyncClient, lake: Lake) -> None:
    bucket, secret = await plant(owner, lake, f"victim{secrets.token_hex(4)}")
    leaks = {}

    for odd in ODD:
        name = f"{odd}{secrets.token_hex(3)}"
        answer = await make_table(owner, lake, name, headers=VENDED)
        assert answer.status_code in (200, 400), f"{odd}: {answer.text}"
        for credential in answer.json().get("storage-credentials", []):
            s3 = connect_with(lake.store, credential["config"])
            if not error_code(lambda s3=s3: s3.get_object(Bucket=bucket, Key=secret)):
                leaks[odd] = "get"
            if not error_code(lambda s3=s3: s3.list_objects_v2(Bucket=bucket)):
                leaks[odd] = "list"
            own_bucket, own = key_of(credential["prefix"])
            s3.put_object(Bucket=own_bucket, Key=f"{own}/data/x", Body=b"x")

    assert leaks == {}


@pytest.mark.parametrize("odd", ["*", "vic*", "${aws:username}", "${*}", 'q"uote', "q'uote", "$"])
async def test_no_location_reaches_beyond_itself(owner: httpx.AsyncClient, lake: Lake, odd: str) -> None:
    bucket, secret = await plant(owner, lake, f"victim{secrets.token_hex(4)}")

    name = f"t{secrets.token_hex(4)}"
    answer = await make_table(owner, lake, name, location=f"{lake.base}/{odd}", headers=VENDED)

    # Either it is a name like any other, or there are no credentials; the table may be there without.
    for credential in answer.json().get("storage-credentials", []):
        s3 = connect_with(lake.store, credential["config"])
        assert error_code(lambda s3=s3: s3.get_object(Bucket=bucket, Key=secret))
        assert error_code(lambda s3=s3: s3.list_objects_v2(Bucket=bucket, Prefix=secret))
    dropped = await owner.delete(lake.path(name))
    assert dropped.status_code == (204 if answer.status_code == 200 else 404)
