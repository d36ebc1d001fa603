"""Arrow data appended to a table: files written with credentials of the catalog, then one request.

    from cynosure.client import append
    append("shop.orders", arrow, catalog="main")            # the default profile of this user

The server gives the files their snapshot, so appends of many clients do not conflict.

A maintainer must not break: the rows are in the table once, or not at all, or the error says that it is not
known. Files are deleted only when the server has said that they will not be part of the table; while that is
not known they stay, because a table may refer to them.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cynosure.client.api import ApiClient, realm_headers, segment
from cynosure.client.catalog import Namespace
from cynosure.client.changes import Keyed
from cynosure.client.http import HttpClient
from cynosure.client.idempotency import make_key
from cynosure.client.profiles import Profile, load_profiles, profiles_path
from cynosure.client.tls import ClientTls
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.common.addresses import is_safe_url
from cynosure.common.clock import SystemClock
from cynosure.common.errors import (
    BadInput,
    CynosureError,
    Forbidden,
    KeyReused,
    Misconfigured,
    NotAuthenticated,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.common.secrets import Secret
from cynosure.iceberg.manifests.content_file_json import JsonTypes, file_to_json
from cynosure.iceberg.partitioning import partition_types

if TYPE_CHECKING:
    from cynosure.client.appending.file_set import Limits
    from cynosure.client.appending.stores import Access
    from cynosure.client.appending.target import StorageCredential, Target
    from cynosure.client.appending.writing import OnProgress, Uploaded

_ICEBERG: Final = "/api/catalog/v1"
_OWN: Final = "/api/catalog/cynosure/v1"
_BETWEEN: Final = "\x1f"
_NAMED: Final = 20
"""Files that an error names."""
_NEVER_KEPT: Final = (NotAuthenticated, Forbidden, Unavailable, KeyReused)
"""Refusals that say nothing about what an earlier request with the same key did."""


class Appended(Struct, frozen=True, rename="kebab"):
    """What an append did."""

    snapshot_id: int | None
    """`None` when there were no rows: nothing was done."""
    added_files: int
    added_records: int
    sequence_number: int | None = None
    schema_id: int | None = None
    metadata_location: str | None = None


class AppendApi(Keyed):
    """Appends to the tables of one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._prefix = segment(catalog)

    async def append(
        self,
        namespace: Namespace,
        name: str,
        data: Any,
        *,
        branch: str = "main",
        summary: Mapping[str, str] | None = None,
        target_file_bytes: int | None = None,
        limits: "Limits | None" = None,
        on_progress: "OnProgress | None" = None,
    ) -> Appended:
        """Write rows as files and append these to a table.

        `data` are Arrow data of any kind (`appending.writing.to_reader`), or a function that makes them when
        it gets the table's columns as an Arrow schema.

        With a key of the caller's (`with_key`), the same rows in the same batches may be appended again, from
        another process too: the rows are in the table once, and the answer is the first one's.
        """
        require_pyarrow()
        from cynosure.client.appending.layout import Layout  # noqa: PLC0415
        from cynosure.client.appending.stores import open_files  # noqa: PLC0415
        from cynosure.client.appending.writing import Writing  # noqa: PLC0415

        table = f"namespaces/{segment(_BETWEEN.join(namespace))}/tables/{segment(name)}"
        target, access = await self._load(f"{_ICEBERG}/{self._prefix}/{table}")
        keyed = await self._choose_key()
        key = keyed._key or make_key(self._api.clock.now_us())
        layout = Layout(target, key)
        store = open_files(layout.base, access)
        uploaded = await Writing(
            target,
            data,
            layout,
            store,
            target_file_bytes=target_file_bytes,
            is_repeat=self._key is not None,
            limits=limits or _make_limits(),
            on_progress=on_progress,
        ).run()
        if not uploaded.files:
            return Appended(None, 0, 0)
        body = {
            "data-files": _to_json(target, uploaded),
            "branch": branch,
            "summary": dict(summary or {}),
            "table-uuid": target.table_uuid,
        }
        try:
            reply = await keyed._change("POST", f"{_OWN}/{self._prefix}/{table}/append", body=body)
        except OutcomeUnknown as error:
            raise _keep(error, uploaded) from error
        except CynosureError as error:
            # Under a key of the caller's another process may have appended these very files.
            if self._key is None or not isinstance(error, _NEVER_KEPT):
                await store.delete(uploaded.own)
            raise
        return reply.decode(Appended)

    async def _choose_key(self) -> "AppendApi":
        """This API under the key of the one change that it makes, where the server honours keys."""
        if self._key is not None or not self._api.keys.is_automatic:
            return self
        if await self._api.discovery.find_lifetime_s(self._catalog) is None:
            return self
        return self.with_key(make_key(self._api.clock.now_us()))

    async def _load(self, path: str) -> "tuple[Target, Access]":
        from cynosure.client.appending.signed_files import Signed  # noqa: PLC0415
        from cynosure.client.appending.stores import Access  # noqa: PLC0415
        from cynosure.client.appending.target import LoadedTable, NewerCredentials, make_target  # noqa: PLC0415

        reply = await self._api.request(
            "GET",
            path,
            query={"snapshots": "refs"},
            headers={"X-Iceberg-Access-Delegation": "vended-credentials"},
        )
        loaded = reply.decode(LoadedTable)

        async def renew() -> "list[StorageCredential]":
            reply = await self._api.request("GET", f"{path}/credentials")
            return reply.decode(NewerCredentials).storage_credentials

        async def sign(wanted: dict[str, Any]) -> "Signed":
            # To sign changes nothing, so it may be asked for twice.
            reply = await self._api.request("POST", f"{path}/sign", body=wanted, is_repeatable=True)
            return reply.decode(Signed)

        return make_target(loaded), Access(loaded.config, loaded.storage_credentials, renew, sign)


def append(
    table: str,
    data: Any,
    *,
    catalog: str,
    server: Profile | str = "",
    branch: str = "main",
    summary: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
    target_file_bytes: int | None = None,
    separator: str = ".",
) -> Appended:
    """Append Arrow data to a table; `AppendApi.append` for programs without an event loop.

    `table` is its name with those of its namespaces before it. `server` is a profile or the name of one of
    this user's; without one, the user's default.
    """
    *namespace, name = table.split(separator) if separator else [table]
    if not namespace or not all((*namespace, name)):
        raise BadInput("Not the name of a table", field="table", fix="Write NAMESPACE.TABLE.", table=table)

    async def work() -> Appended:
        async with _connect(server) as api:
            appends = AppendApi(api, catalog)
            if idempotency_key is not None:
                appends = appends.with_key(idempotency_key)
            return await appends.append(
                tuple(namespace),
                name,
                data,
                branch=branch,
                summary=summary,
                target_file_bytes=target_file_bytes,
            )

    # In a thread of its own: a notebook has a loop already.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work()).result()


@asynccontextmanager
async def _connect(server: Profile | str) -> AsyncIterator[ApiClient]:
    profile = server if isinstance(server, Profile) else _find_profile(server)
    if not profile.plain_http and not is_safe_url(profile.url):
        raise Misconfigured(
            "The secret would go to another machine without TLS",
            fix="Use https://, or set plain_http if the network between is trusted.",
            url=profile.url,
        )
    tls = None
    if profile.url.startswith("https:"):
        ca, certificate, key = (
            Path(path) if path else None for path in (profile.tls_ca, profile.tls_cert, profile.tls_key)
        )
        tls = ClientTls(ca=ca, certificate=certificate, key=key)
    clock = SystemClock()
    base = profile.url.rstrip("/").removesuffix("/api/catalog")
    async with HttpClient(base, clock=clock, rng=random.Random(), tls=tls) as http:  # noqa: S311 - jitter only
        credentials = ClientCredentials(profile.client_id, Secret(profile.client_secret))
        tokens = TokenSource(http, credentials, clock, headers=realm_headers(profile.realm))
        yield ApiClient(http, tokens=tokens, realm=profile.realm)


def _find_profile(name: str) -> Profile:
    profiles = load_profiles(profiles_path(os.environ))
    return profiles.get(name or profiles.default)


def _to_json(target: "Target", uploaded: "Uploaded") -> list[dict[str, Any]]:
    spec = target.spec
    kinds = JsonTypes({spec.spec_id: partition_types(spec, target.schema)}, target.schema.find_type)
    return [file_to_json(file, kinds) for file in uploaded.files]


def _keep(error: OutcomeUnknown, uploaded: "Uploaded") -> OutcomeUnknown:
    """The same error, with the files that stay because of it."""
    paths = [file.path for file in uploaded.files]
    return type(error)(
        error.message,
        fix=f"{error.fix} The files stay where they are, because the table may have them.".strip(),
        **error.details,
        files=paths[:_NAMED],
        file_count=len(paths),
    )


def require_pyarrow() -> None:
    """`Misconfigured` when the extra is not installed."""
    try:
        import pyarrow  # noqa: F401, PLC0415
    except ImportError as error:
        raise Misconfigured(
            "To write files pyarrow is needed, which is not installed",
            fix="Run: pip install 'cynosure[append]'",
        ) from error


def _make_limits() -> "Limits":
    from cynosure.client.appending.file_set import Limits  # noqa: PLC0415

    return Limits()
