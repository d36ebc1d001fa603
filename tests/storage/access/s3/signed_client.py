"""Amazon's own client without any key: it has each request signed, the way PyIceberg's client does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

import boto3
from botocore import UNSIGNED
from botocore.awsrequest import AWSRequest
from botocore.config import Config

from cynosure.storage.access.ports import Signed, StoreRequest
from cynosure.storage.location import Location

from .boto_client import BotoClient

Sign = Callable[[StoreRequest], Awaitable[Signed]]
Change = Callable[[AWSRequest], None]


@cache
def _session() -> boto3.Session:
    # One for all: it reads its model of the service from disk.
    return boto3.Session()


class SignedClient(BotoClient):
    def __init__(self, endpoint: str | None, region: str, sign: Sign, after: Change | None = None) -> None:
        """Without an endpoint, of Amazon.

        `after` is what the client does to a request once it is signed; it need not be honest.
        """
        style = {"addressing_style": "path"} if endpoint else {}
        config = Config(signature_version=UNSIGNED, retries={"max_attempts": 1}, s3=style)
        self.s3: Any = _session().client("s3", endpoint_url=endpoint, region_name=region, config=config)
        loop = asyncio.get_running_loop()

        async def ask(request: StoreRequest) -> Signed:
            return await sign(request)

        def have_signed(request: AWSRequest, **_: Any) -> None:
            is_bulk = request.method == "POST" and "?delete" in request.url
            asked = StoreRequest(
                method=request.method,
                uri=request.url,
                headers={name: [value] for name, value in request.headers.items()},
                region=region,
                body=request.data.decode() if is_bulk else None,
            )
            # Requests are made in other threads; signing belongs to the test's.
            signed = asyncio.run_coroutine_threadsafe(ask(asked), loop).result(30)
            for name, values in signed.headers.items():
                request.headers.add_header(name, ", ".join(values))
            request.url = signed.uri
            if after is not None:
                after(request)

        self.s3.meta.events.register_last("before-sign.s3", have_signed)

    async def copy(self, source: Location, target: Location) -> None:
        await asyncio.to_thread(self.s3.copy_object, **_named(target), CopySource=_named(source))

    async def delete_many(self, locations: Sequence[Location]) -> list[str]:
        """The keys that were not deleted."""
        objects = [{"Key": _named(each)["Key"]} for each in locations]
        bucket = locations[0].authority
        answer = await asyncio.to_thread(
            self.s3.delete_objects, Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
        )
        return [error["Key"] for error in answer.get("Errors", [])]


def _named(location: Location) -> dict[str, str]:
    return {"Bucket": location.authority, "Key": "/".join(location.segments)}
