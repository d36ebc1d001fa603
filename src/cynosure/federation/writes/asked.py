"""What a remote was asked for and has not answered yet: the index `asked` of the catalog.

A remote that takes no Idempotency-Keys, or forgets them, cannot tell whether a request came before. So what a
request with a key is about to ask is written down first, with what the remote had then. Whoever takes the
request over after a crash finds that, and looks at the remote before it asks anything; where there is none,
nothing was asked.

Must not break: it is in the chain before the remote is asked, and taken away only with an outcome that is
certain. And only one attempt at a time gets past it: who finds another's never asks blindly.
"""

from datetime import timedelta
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.federation.writes.write import Before
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_key

INDEX: Final = "asked"
_KEPT_US: Final = timedelta(days=7) // timedelta(microseconds=1)
"""Much longer than any key is remembered (`idempotency.lifetime`), so nobody asks for it any more."""
_LOOKED_AT: Final = 4
"""Old ones that each new one looks at."""
_log = Log(__name__)


class Asked(Struct, frozen=True, array_like=True):
    """One question. Stored: fields only get added, with defaults."""

    asked_us: int
    before: Before


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Asked)


def _key_of(key: RequestKey) -> bytes:
    return encode_key(key.hash)


async def find_asked(view: View, key: RequestKey) -> Before | None:
    """What the remote had when an earlier attempt asked it; `None` when none did."""
    value = await view.find(INDEX, _key_of(key))
    return None if value is None else _DECODER.decode(value).before


async def note_asked(catalog: OpenCatalog, caller: Caller, key: RequestKey, before: Before) -> Before | None:
    """Write down that the remote is about to be asked; what an earlier attempt wrote down, if one did."""
    now_us = catalog.shared.persistence.clock.now_us()
    own = _key_of(key)

    async def prepare(view: View) -> Prepared[Before | None]:
        found = await find_asked(view, key)
        if found is not None:
            return Prepared(found)
        entries: dict[bytes, bytes | None] = {
            each: None
            for each, value in await view.scan(INDEX, limit=_LOOKED_AT)
            if _DECODER.decode(value).asked_us < now_us - _KEPT_US
        }
        entries[own] = _ENCODER.encode(Asked(now_us, before))
        return Prepared(None, {INDEX: entries})

    return await commit_part(catalog.committer, caller, "federation-ask", prepare)


async def forget_asked(catalog: OpenCatalog, caller: Caller, key: RequestKey) -> None:
    """Take it away: the remote has certainly not done it. Left there, it is only looked for once more."""

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, await erasing_asked(view, key))

    try:
        await commit_part(catalog.committer, caller, "federation-answered", prepare)
    except CynosureError as error:
        _log.event("federation.not_forgotten", level=WARNING, catalog=catalog.entity.name, error=error)


async def erasing_asked(view: View, key: RequestKey) -> dict[str, dict[bytes, bytes | None]]:
    """Changes that take it away."""
    own = _key_of(key)
    return {} if await view.find(INDEX, own) is None else {INDEX: {own: None}}
