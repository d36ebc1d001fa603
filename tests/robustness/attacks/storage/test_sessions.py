"""Credentials beyond simple reads and writes: uploads in parts, upload ids of others, expiry. Promise I55."""

import asyncio
import secrets
from typing import Any

import boto3
import httpx
import pytest

from cynosure.storage.access.ports import Scope
from cynosure.storage.access.s3.session_policy import Dialect, session_policy
from cynosure.storage.location import Location
from cynosure.testing.admin import Grant
from tests.robustness.attacks.storage.lakes import (
    DENIED,
    Lake,
    assert_denied,
    connect,
    connect_with,
    error_code,
    key_of,
    make_table,
    vend,
)
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio

GONE = DENIED | {"NoSuchUpload", "404", "400", "InvalidRequest"}


async def test_an_upload_of_another_table_is_neither_joined_nor_ended_nor_read(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Its id is no secret: whoever may list uploads knows it."""
    mine, theirs = f"t{secrets.token_hex(4)}", f"t{secrets.token_hex(4)}"
    places = {}
    for name in (mine, theirs):
        made = await make_table(owner, lake, name, location=f"{lake.base}/{name}")
        assert made.status_code == 200, made.text
        places[name] = key_of(f"{lake.base}/{name}/data/large")
    (bucket, victim), (_, own) = places[theirs], places[mine]
    writer = await make_thief(lake, Grant("TABLE_WRITE_DATA", ("ns",), mine))
    s3 = connect_with(lake.store, await vend(writer.http, lake, mine))
    store = lake.as_owner()
    upload = store.create_multipart_upload(Bucket=bucket, Key=victim)["UploadId"]
    body = b"x" * 5_242_880
    part = store.upload_part(Bucket=bucket, Key=victim, UploadId=upload, PartNumber=1, Body=body)
    done: dict[str, Any] = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    source = {"Bucket": bucket, "Key": victim}
    attempts: dict[str, Any] = {}

    for key in (victim, own):
        named: dict[str, Any] = {"Bucket": bucket, "Key": key, "UploadId": upload}
        attempts |= {
            f"add to {key}": lambda at=named: s3.upload_part(**at, PartNumber=2, Body=b"stolen"),
            f"copy to {key}": lambda at=named: s3.upload_part_copy(**at, PartNumber=2, CopySource=source),
            f"list {key}": lambda at=named: s3.list_parts(**at),
            f"complete {key}": lambda at=named: s3.complete_multipart_upload(**at, MultipartUpload=done),
        }
    attempts["list all"] = lambda: s3.list_multipart_uploads(Bucket=bucket)
    attempts["list theirs"] = lambda: s3.list_multipart_uploads(Bucket=bucket, Prefix=victim)
    found = {kind: code for kind, each in attempts.items() if (code := error_code(each)) not in GONE}
    # Refused, or answered for an upload that is not there: never for this one.
    error_code(lambda: s3.abort_multipart_upload(Bucket=bucket, Key=victim, UploadId=upload))
    error_code(lambda: s3.abort_multipart_upload(Bucket=bucket, Key=own, UploadId=upload))

    assert found == {}
    store.complete_multipart_upload(Bucket=bucket, Key=victim, UploadId=upload, MultipartUpload=done)
    assert store.head_object(Bucket=bucket, Key=victim)["ContentLength"] == len(body)


async def test_nothing_is_copied_in_parts_from_another_table(owner: httpx.AsyncClient, lake: Lake) -> None:
    mine, theirs = f"t{secrets.token_hex(4)}", f"t{secrets.token_hex(4)}"
    for name in (mine, theirs):
        assert (await make_table(owner, lake, name, location=f"{lake.base}/{name}")).status_code == 200
    bucket, victim = key_of(f"{lake.base}/{theirs}/data/secret")
    _, own = key_of(f"{lake.base}/{mine}/data/copy")
    lake.as_owner().put_object(Bucket=bucket, Key=victim, Body=b"secret")
    s3 = connect_with(lake.store, await vend(owner, lake, mine))
    upload = s3.create_multipart_upload(Bucket=bucket, Key=own)["UploadId"]

    assert_denied(
        lambda: s3.upload_part_copy(
            Bucket=bucket,
            Key=own,
            UploadId=upload,
            PartNumber=1,
            CopySource={"Bucket": bucket, "Key": victim},
        )
    )
    s3.abort_multipart_upload(Bucket=bucket, Key=own, UploadId=upload)


async def test_credentials_without_their_token_or_with_anothers_are_none(
    owner: httpx.AsyncClient, lake: Lake
) -> None:
    configs = []
    for _ in range(2):
        name = f"t{secrets.token_hex(4)}"
        made = (await make_table(owner, lake, name)).json()
        configs.append((key_of(made["metadata-location"]), await vend(owner, lake, name)))
    ((bucket, key), config), (_, other) = configs
    key_id, secret = config["s3.access-key-id"], config["s3.secret-access-key"]
    token = config["s3.session-token"]

    for changed in (None, "", "x", other["s3.session-token"], token[:-4], token[::-1]):
        s3 = connect(lake.store, key_id, secret, changed)
        assert error_code(lambda s3=s3: s3.get_object(Bucket=bucket, Key=key))
    wrong = connect(lake.store, key_id, other["s3.secret-access-key"], token)
    assert error_code(lambda: wrong.get_object(Bucket=bucket, Key=key))


async def test_credentials_end_when_they_say(owner: httpx.AsyncClient, lake: Lake) -> None:
    """Of what is vended, it is read; that the store keeps to it, with a session that ends within seconds."""
    name = f"t{secrets.token_hex(4)}"
    made = (await make_table(owner, lake, name, location=f"{lake.base}/{name}")).json()
    before_ms = int((await vend(owner, lake, name))["s3.session-token-expires-at-ms"])
    assert 0 < before_ms - made["metadata"]["last-updated-ms"] <= 3_660_000
    if lake.store.name == "minio":
        return  # Gives none for less than a quarter of an hour: docs/reference/s3-servers.md.
    sts = boto3.client(
        "sts",
        endpoint_url=lake.store.endpoint,
        region_name=lake.store.region,
        aws_access_key_id=lake.store.access_key_id,
        aws_secret_access_key=lake.store.secret_access_key,
    )
    scope = Scope((Location.parse(f"{lake.base}/{name}"),), is_writable=True)
    # Without a duration our test server gives the shortest that it knows.
    given = sts.assume_role(
        RoleArn=lake.store.role_arn,
        RoleSessionName="brief",
        Policy=session_policy(scope, Dialect(has_roles=True)),
    )["Credentials"]
    s3 = connect(lake.store, given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    bucket, key = key_of(made["metadata-location"])
    s3.get_object(Bucket=bucket, Key=key)

    for _ in range(300):
        if error_code(lambda: s3.get_object(Bucket=bucket, Key=key)):
            break
        await asyncio.sleep(0.1)

    assert_denied(lambda: s3.get_object(Bucket=bucket, Key=key))
    assert_denied(lambda: s3.put_object(Bucket=bucket, Key=f"{key}.x", Body=b"x"))
    assert_denied(lambda: s3.list_objects_v2(Bucket=bucket, Prefix=key.rpartition("/")[0] + "/"))
