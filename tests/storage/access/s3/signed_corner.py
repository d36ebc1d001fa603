"""Two tables in a real store, and a client without keys that has requests for one of them signed."""

from collections.abc import Callable

from botocore.awsrequest import AWSRequest

from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope, Signed, StoreRequest
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.signer import S3Signer
from cynosure.storage.access.vending import Vending
from cynosure.storage.config import S3Storage
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import ALICE

from .boto_client import BotoClient
from .signed_client import SignedClient


class SignedCorner:
    def __init__(self, server: S3Server, base: Location, vending: Vending | None = None) -> None:
        self.server = server
        self.owner = BotoClient.owner_of(server)
        self.table = base.child("orders 1=ü")
        self.other = base.child("other")
        config = S3Storage(
            allowed_locations=(base.text,),
            endpoint=server.endpoint,
            region=server.region,
            path_style_access=True,
        )
        keys = StaticKeys(S3Session(server.access_key_id, Secret(server.secret_access_key)))
        self.signer = S3Signer(config, keys, StorageSettings(), SystemClock(), vending)

    async def sign(self, request: StoreRequest) -> Signed:
        scope = Scope((self.table,), is_writable=True)
        return await self.signer.inspect(request).sign(scope, ALICE)

    def client(self, after: Callable[[AWSRequest], None] | None = None) -> SignedClient:
        """`after` is what it does to a request that is signed."""
        return SignedClient(self.server.endpoint, self.server.region, self.sign, after)
