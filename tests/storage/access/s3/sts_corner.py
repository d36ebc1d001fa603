"""One S3 server with a token service, with a prefix of a test's own."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.vendor import S3Vendor
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import Shop

from .boto_client import BotoClient

SHORT = StorageSettings(credential_lifetime=timedelta(minutes=15))


class StsCorner:
    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.base = Location.parse(server.fresh_location()).child("allowed")
        self.elsewhere = Location.parse(f"s3://{server.other_bucket}").child(*self.base.segments)
        self.config = S3Storage(
            allowed_locations=(self.base.text,),
            region=server.region,
            endpoint=server.endpoint,
            path_style_access=True,
            sts=S3Sts(role_arn=server.role_arn),
        )
        self.keys = S3Keys(server.access_key_id, Secret(server.secret_access_key))
        self.source = StaticKeys(S3Session(self.keys.access_key_id, self.keys.secret_access_key))

    def vendor(
        self, settings: StorageSettings = SHORT, clock: Clock | None = None, **changes: Any
    ) -> S3Vendor:
        return S3Vendor(replace(self.config, **changes), self.source, settings, clock or SystemClock())

    def shop(self) -> Shop:
        owner = BotoClient.owner_of(self.server)
        return Shop(
            self.vendor(), self.base, self.elsewhere, owner, lambda config: BotoClient(self.server, config)
        )

    async def clean(self) -> None:
        for place in (self.base, self.elsewhere):
            top = Location.parse(f"s3://{place.authority}/{'/'.join(place.segments[:2])}")
            files = S3FileIO(
                replace(self.config, allowed_locations=(top.text,)), self.source, StorageSettings()
            )
            await files.delete_many([found.location async for found in files.list(top)])
