"""Servers are what the environment says, and their definitions are what catalogs take."""

import json
import uuid
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cynosure.testing.s3_servers import VARIABLES, S3Server, find_s3_servers, parse_s3_server

ROLE = "arn:aws:iam::000000000000:role/vending"
URL = f"http://KEY:SECRET@127.0.0.1:9000/bucket?region=eu-west-1#{ROLE}"


def test_a_url_names_everything():
    found = parse_s3_server("seaweedfs", URL)

    assert (found.endpoint, found.region, found.bucket) == ("http://127.0.0.1:9000", "eu-west-1", "bucket")
    assert (found.access_key_id, found.secret_access_key, found.role_arn) == ("KEY", "SECRET", ROLE)
    assert found.storage()["roleArn"] == ROLE
    assert "stsUnavailable" not in found.storage()
    assert found.fresh_location() != found.fresh_location()


def test_a_server_without_a_token_service_says_so_in_its_definition():
    found = parse_s3_server("no-sts", URL.partition("#")[0])

    assert found.storage()["stsUnavailable"] is True
    assert "roleArn" not in found.storage()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/bucket", "http://KEY:SECRET@127.0.0.1:9000/"])
def test_a_url_without_keys_or_bucket_is_refused_by_its_variable(url: str):
    with pytest.raises(ValueError, match="CYNOSURE_TEST_MINIO"):
        parse_s3_server("minio", url)


def test_only_servers_that_the_environment_names_are_there(monkeypatch: pytest.MonkeyPatch):
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(VARIABLES["minio"], URL)

    assert list(find_s3_servers()) == ["minio"]


def test_servers_with_a_token_service_enforce_the_policy_of_a_session_and_nothing_but_it(
    sts_server: S3Server,
):
    place = {"endpoint_url": sts_server.endpoint, "region_name": sts_server.region}
    owner = {
        "aws_access_key_id": sts_server.access_key_id,
        "aws_secret_access_key": sts_server.secret_access_key,
    }
    bucket, prefix = sts_server.bucket, f"tests/{uuid.uuid4().hex}"
    for key in (f"{prefix}/a/1", f"{prefix}/b/1"):
        boto3.client("s3", **place, **owner).put_object(Bucket=bucket, Key=key, Body=b"x")
    allowed = {
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/a/*"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})

    def reached(**wanted: str) -> list[bool]:
        role = sts_server.role_arn or "arn:aws:iam::000000000000:role/any"
        tokens = boto3.client("sts", **place, **owner)
        given = tokens.assume_role(RoleArn=role, RoleSessionName="tests", **wanted)["Credentials"]
        keys = {
            "aws_access_key_id": given["AccessKeyId"],
            "aws_secret_access_key": given["SecretAccessKey"],
            "aws_session_token": given["SessionToken"],
        }
        client = boto3.client("s3", **place, **keys)
        return [can_get(client, bucket, f"{prefix}/{name}/1") for name in "ab"]

    assert reached() == [True, True]
    assert reached(Policy=policy) == [True, False]


def can_get(client: Any, bucket: str, key: str) -> bool:
    try:
        client.get_object(Bucket=bucket, Key=key)
    except ClientError as refused:
        if refused.response["Error"]["Code"] != "AccessDenied":
            raise
        return False
    return True
