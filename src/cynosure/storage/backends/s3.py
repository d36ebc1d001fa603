"""Files in S3 and in stores that speak its protocol.

A maintainer must not break: keys are loaded before each operation (`_authenticate`), because obstore, which
asks for them in the middle of one, would hide why there are none.
"""

from cynosure.storage.access.s3.keys import S3KeySource, S3Session
from cynosure.storage.backends.s3_bucket import open_bucket
from cynosure.storage.config import S3Storage, allowed_locations
from cynosure.storage.fileio import check_allowed
from cynosure.storage.location import Location
from cynosure.storage.object_files import ObjectFiles, Store
from cynosure.storage.settings import StorageSettings
from cynosure.storage.unnamed import Removed


class S3FileIO(ObjectFiles):
    """Objects below the allowed locations, in any number of buckets under one endpoint and one key."""

    def __init__(
        self,
        config: S3Storage,
        keys: S3KeySource,
        settings: StorageSettings,
        *,
        repeats_changes: bool = True,
    ) -> None:
        store = Store(
            open_bucket=lambda location, wanted: open_bucket(
                location.authority, config, self._get_session, wanted
            ),
            authenticate=self._authenticate,
            deleted_at_once=1_000,
            deletes_what_is_gone=True,
            repeats_changes=repeats_changes,
        )
        super().__init__(store, allowed_locations(config), settings)
        self._config = config
        self._keys = keys
        self._session: S3Session | None = None
        """Keys of the operation that began last."""

    async def delete_unnamed(self, place: Location, *, with_markers: bool) -> Removed:
        """See `storage.unnamed`."""
        from cynosure.storage.backends.s3_unnamed import RawObjects  # noqa: PLC0415 - hardly ever needed

        check_allowed(place, self._allowed)
        raw = RawObjects(place.authority, self._config, self._settings)
        return await raw.delete_unnamed(await self._keys.load(), place, with_markers=with_markers)

    async def _authenticate(self) -> None:
        self._session = await self._keys.load()

    def _get_session(self) -> S3Session:
        if self._session is None:
            raise RuntimeError("obstore asked for keys outside of an operation")
        return self._session
