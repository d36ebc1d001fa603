"""Amazon's own client, to try on real stores what credentials open. Nothing of ours is in it."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import Denied

REFUSALS = {"AccessDenied", "403", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken"}


@cache
def _session() -> boto3.Session:
    # One for all: it reads its model of the service from disk.
    return boto3.Session()


class BotoClient:
    def __init__(self, server: S3Server, config: Mapping[str, str]) -> None:
        self.s3: Any = _session().client(
            "s3",
            endpoint_url=server.endpoint,
            region_name=server.region,
            aws_access_key_id=config["s3.access-key-id"],
            aws_secret_access_key=config["s3.secret-access-key"],
            aws_session_token=config.get("s3.session-token"),
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    @classmethod
    def owner_of(cls, server: S3Server) -> "BotoClient":
        keys = {"s3.access-key-id": server.access_key_id, "s3.secret-access-key": server.secret_access_key}
        return cls(server, keys)

    async def get(self, location: Location) -> bytes:
        def read() -> bytes:
            return self.s3.get_object(**_named(location))["Body"].read()

        return await _ask(read)

    async def put(self, location: Location, data: bytes) -> None:
        await _ask(lambda: self.s3.put_object(**_named(location), Body=data))

    async def delete(self, location: Location) -> None:
        await _ask(lambda: self.s3.delete_object(**_named(location)))

    async def upload_in_parts(self, location: Location, data: bytes) -> None:
        def upload() -> None:
            named = _named(location)
            upload_id = self.s3.create_multipart_upload(**named)["UploadId"]
            etag = self.s3.upload_part(**named, UploadId=upload_id, PartNumber=1, Body=data)["ETag"]
            assert self.s3.list_parts(**named, UploadId=upload_id)["Parts"]
            parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
            self.s3.complete_multipart_upload(**named, UploadId=upload_id, MultipartUpload=parts)
            other = self.s3.create_multipart_upload(**named)["UploadId"]
            self.s3.abort_multipart_upload(**named, UploadId=other)

        await _ask(upload)

    async def list(self, beside: Location, prefix: str) -> list[str]:
        # Without a word about the prefix where there is none, as a client that lists a whole bucket.
        narrowed = {"Prefix": prefix} if prefix else {}
        answer = await _ask(lambda: self.s3.list_objects_v2(Bucket=beside.authority, **narrowed))
        return [found["Key"] for found in answer.get("Contents", [])]


def _named(location: Location) -> dict[str, str]:
    return {"Bucket": location.authority, "Key": "/".join(location.segments)}


async def _ask(call: Callable[[], Any]) -> Any:
    try:
        return await asyncio.to_thread(call)
    except ClientError as error:
        if error.response["Error"]["Code"] in REFUSALS:
            raise Denied(error.response["Error"]["Code"]) from error
        raise
