"""What credentials of one table do to everything that is not this table: nothing. Promise I55."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
import httpx
import pytest
from botocore.client import BaseClient

from cynosure.testing.admin import Grant
from tests.robustness.attacks.user import MakeUser

from .lakes import Lake, assert_denied, connect, connect_with, error_code, key_of, make_table, vend

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Target:
    """A victim's object beside the attacker's table."""

    bucket: str
    own: str
    """Prefix of the table that the credentials are for, with a slash."""
    victim: str
    """Prefix of another one."""
    secret: str
    """Key of an object of the victim's."""


async def prepare(owner: httpx.AsyncClient, lake: Lake, suffix: str = "2") -> tuple[str, Target]:
    """Two tables of which one's location begins with the other's, and a file in the second."""
    name = f"orders{secrets.token_hex(4)}"
    for each in (name, f"{name}{suffix}"):
        made = await make_table(owner, lake, each, location=f"{lake.base}/{each}")
        assert made.status_code == 200, made.text
    bucket, own = key_of(f"{lake.base}/{name}/")
    victim = f"{own.removesuffix('/')}{suffix}/"
    target = Target(bucket, own, victim, f"{victim}data/secret.parquet")
    lake.as_owner().put_object(Bucket=bucket, Key=target.secret, Body=b"secret")
    lake.as_owner().put_object(Bucket=bucket, Key=f"{own}data/mine.parquet", Body=b"mine")
    return name, target


def _multipart(s3: BaseClient, bucket: str, key: str) -> None:
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"x")
    s3.complete_multipart_upload(
        Bucket=bucket,
        Key=key,
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )


Attack = Callable[[BaseClient, Target], Any]
READS: dict[str, Attack] = {
    "get": lambda s3, at: s3.get_object(Bucket=at.bucket, Key=at.secret),
    "get a range": lambda s3, at: s3.get_object(Bucket=at.bucket, Key=at.secret, Range="bytes=0-1"),
    "head": lambda s3, at: s3.head_object(Bucket=at.bucket, Key=at.secret),
    "list everything": lambda s3, at: s3.list_objects_v2(Bucket=at.bucket),
    "list the other": lambda s3, at: s3.list_objects_v2(Bucket=at.bucket, Prefix=at.victim),
    "list a prefix of both": lambda s3, at: s3.list_objects_v2(Bucket=at.bucket, Prefix=at.own[:-2]),
    "list folders": lambda s3, at: s3.list_objects_v2(Bucket=at.bucket, Prefix="", Delimiter="/"),
    "list the old way": lambda s3, at: s3.list_objects(Bucket=at.bucket, Prefix=at.victim),
    "copy from the other": lambda s3, at: s3.copy_object(
        Bucket=at.bucket, Key=f"{at.own}stolen", CopySource={"Bucket": at.bucket, "Key": at.secret}
    ),
    "path with dots": lambda s3, at: s3.get_object(
        Bucket=at.bucket, Key=f"{at.own}../{at.victim.split('/')[-2]}/data/secret.parquet"
    ),
    "bucket policy": lambda s3, at: s3.get_bucket_policy(Bucket=at.bucket),
    "bucket rights": lambda s3, at: s3.get_bucket_acl(Bucket=at.bucket),
}
WRITES: dict[str, Attack] = {
    "put": lambda s3, at: s3.put_object(Bucket=at.bucket, Key=f"{at.victim}new", Body=b"x"),
    "overwrite": lambda s3, at: s3.put_object(Bucket=at.bucket, Key=at.secret, Body=b"x"),
    "put beside": lambda s3, at: s3.put_object(Bucket=at.bucket, Key=f"{at.own[:-1]}-x", Body=b"x"),
    "delete": lambda s3, at: s3.delete_object(Bucket=at.bucket, Key=at.secret),
    "multipart": lambda s3, at: _multipart(s3, at.bucket, f"{at.victim}large"),
    "copy over the other": lambda s3, at: s3.copy_object(
        Bucket=at.bucket,
        Key=at.secret,
        CopySource={"Bucket": at.bucket, "Key": f"{at.own}data/mine.parquet"},
    ),
    "write the bucket's policy": lambda s3, at: s3.put_bucket_policy(Bucket=at.bucket, Policy="{}"),
    "another bucket": lambda s3, at: s3.create_bucket(Bucket=f"x{secrets.token_hex(6)}"),
}


async def test_credentials_work_on_their_own_table(owner: httpx.AsyncClient, lake: Lake) -> None:
    name, at = await prepare(owner, lake)

    s3 = connect_with(lake.store, await vend(owner, lake, name))

    s3.put_object(Bucket=at.bucket, Key=f"{at.own}data/new", Body=b"new")
    assert s3.get_object(Bucket=at.bucket, Key=f"{at.own}data/new")["Body"].read() == b"new"
    listed = s3.list_objects_v2(Bucket=at.bucket, Prefix=at.own)["Contents"]
    assert f"{at.own}data/mine.parquet" in {each["Key"] for each in listed}
    _multipart(s3, at.bucket, f"{at.own}data/large")
    s3.delete_object(Bucket=at.bucket, Key=f"{at.own}data/new")


async def test_credentials_of_one_table_do_nothing_to_another(owner: httpx.AsyncClient, lake: Lake) -> None:
    name, at = await prepare(owner, lake)
    s3 = connect_with(lake.store, await vend(owner, lake, name))
    done = []

    for kind, attack in {**READS, **WRITES}.items():
        if not error_code(lambda attack=attack: attack(s3, at)):
            done.append(kind)

    assert done == []
    assert lake.as_owner().get_object(Bucket=at.bucket, Key=at.secret)["Body"].read() == b"secret"
    listed = lake.as_owner().list_objects_v2(Bucket=at.bucket, Prefix=at.victim)["Contents"]
    assert not {each["Key"] for each in listed} & {f"{at.victim}new", f"{at.victim}large"}


async def test_credentials_of_a_table_show_no_other_bucket(owner: httpx.AsyncClient, lake: Lake) -> None:
    name, at = await prepare(owner, lake)
    s3 = connect_with(lake.store, await vend(owner, lake, name))
    shown: list[str] = []

    error_code(lambda: shown.extend(each["Name"] for each in s3.list_buckets()["Buckets"]))

    assert set(shown) <= {at.bucket}


async def test_a_deletion_of_many_spares_what_is_not_the_tables(owner: httpx.AsyncClient, lake: Lake) -> None:
    name, at = await prepare(owner, lake)
    s3 = connect_with(lake.store, await vend(owner, lake, name))
    mixed = [{"Key": f"{at.own}data/mine.parquet"}, {"Key": at.secret}]

    error_code(lambda: s3.delete_objects(Bucket=at.bucket, Delete={"Objects": mixed}))

    assert lake.as_owner().get_object(Bucket=at.bucket, Key=at.secret)["Body"].read() == b"secret"


async def test_who_may_read_gets_credentials_that_only_read(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name, at = await prepare(owner, lake)
    reader = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), name))
    s3 = connect_with(lake.store, await vend(reader.http, lake, name))
    mine = f"{at.own}data/mine.parquet"

    assert s3.get_object(Bucket=at.bucket, Key=mine)["Body"].read() == b"mine"
    assert_denied(lambda: s3.put_object(Bucket=at.bucket, Key=f"{at.own}data/new", Body=b"x"))
    assert_denied(lambda: s3.put_object(Bucket=at.bucket, Key=mine, Body=b"x"))
    assert_denied(lambda: s3.delete_object(Bucket=at.bucket, Key=mine))
    assert_denied(lambda: _multipart(s3, at.bucket, f"{at.own}data/large"))
    assert_denied(
        lambda: s3.copy_object(
            Bucket=at.bucket, Key=f"{at.own}copy", CopySource={"Bucket": at.bucket, "Key": mine}
        )
    )
    # Answered as a whole, with an error for each.
    error_code(lambda: s3.delete_objects(Bucket=at.bucket, Delete={"Objects": [{"Key": mine}]}))
    assert lake.as_owner().get_object(Bucket=at.bucket, Key=mine)["Body"].read() == b"mine"


async def test_who_may_not_read_gets_nothing(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name, _ = await prepare(owner, lake)
    somebody = await make_thief(lake, Grant("TABLE_FULL_METADATA", ("ns",), name))

    for path in (lake.path(name), f"{lake.path(name)}/credentials"):
        answer = await somebody.http.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
        assert answer.status_code == 403, answer.text
        assert "s3." not in answer.text


async def test_credentials_do_not_become_more_by_asking_again(owner: httpx.AsyncClient, lake: Lake) -> None:
    """A session that may assume the role again, without the policy, would shed its scope."""
    name, at = await prepare(owner, lake)
    config = await vend(owner, lake, name)
    sts = boto3.client(
        "sts",
        endpoint_url=lake.store.endpoint,
        region_name=lake.store.region,
        aws_access_key_id=config["s3.access-key-id"],
        aws_secret_access_key=config["s3.secret-access-key"],
        aws_session_token=config["s3.session-token"],
    )
    given: list[dict[str, str]] = []

    error_code(
        lambda: given.append(
            sts.assume_role(
                RoleArn=lake.store.role_arn or "arn:aws:iam::000000000000:role/any", RoleSessionName="again"
            )["Credentials"]
        )
    )

    for each in given:
        again = connect(lake.store, each["AccessKeyId"], each["SecretAccessKey"], each["SessionToken"])
        assert_denied(lambda again=again: again.get_object(Bucket=at.bucket, Key=at.secret))
        assert_denied(lambda again=again: again.list_objects_v2(Bucket=at.bucket))
