"""What is stored of a request with an Idempotency-Key, and how one state follows the other.

    (nothing) ── reserve ──► IN_PROGRESS ── finalize ──► FINALIZED
                              │      ▲
                     release, │      │ take over: attempt + 1
                     lease out└──────┘

Functions here are pure: they say what a record becomes.

Must not break: neither the key's text nor anything of an answer is stored readable; stored structs get new
fields with defaults only.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec
from msgspec import Struct, structs

from cynosure.common.errors import CorruptObject
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId

RecordState = Literal["IN_PROGRESS", "FINALIZED"]


class Answer(Struct, frozen=True, array_like=True):
    """An answer to a request, as it is stored and given again."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def pack(self) -> bytes:
        """As bytes; `unpack_answer` reads them."""
        return msgspec.msgpack.encode(self)


_decode_answer = msgspec.msgpack.Decoder(Answer).decode


def unpack_answer(packed: bytes) -> Answer:
    """An answer from its bytes."""
    try:
        return _decode_answer(packed)
    except msgspec.DecodeError as error:
        raise CorruptObject("A stored answer does not decode") from error


class Record(Stored, frozen=True, omit_defaults=True):
    """One key in its scope."""

    key_hash: str
    """Of scope and key, lower-case hexadecimal."""
    realm: str
    method: str
    path: str
    """The canonical path of the resource, as much of it as is of use to an operator."""
    principal: str
    payload_hash: str
    """What the key is bound to, lower-case hexadecimal."""
    created_us: int
    updated_us: int
    expires_us: int
    """From then on the key is as good as unknown."""
    state: RecordState = "IN_PROGRESS"
    attempt: int = 1
    holder: str = ""
    """The process that executes it, in words for operators. Nothing is decided by it."""
    lease_until_us: int = 0
    """When the holder is given up for dead, unless it renews this. 0: it said itself that it has given up."""
    status: int = 0
    """Of the answer, once there is one."""
    is_in_chain: bool = False
    """The outcome is in a chain of commits, found there by the key; nothing of it is stored here."""
    sealed: bytes = b""
    """The answer, encrypted under a key derived from the Idempotency-Key."""
    parts: tuple[ObjId, ...] = ()
    """Where the answer is, when it is too large for this row."""


class Part(Stored, frozen=True):
    """A piece of a large answer."""

    data: bytes


RECORD: Final = struct_type("idempotency-record", Record, is_mutable=True, is_compressed=False)
PART: Final = struct_type("idempotency-part", Part, is_mutable=True)

Next = Callable[[Record], Record]
"""What a record becomes."""


def taken_over(record: Record, *, holder: str, now_us: int, lease_us: int) -> Record:
    """The next attempt."""
    return structs.replace(
        record,
        attempt=record.attempt + 1,
        holder=holder,
        updated_us=now_us,
        lease_until_us=now_us + lease_us,
    )


def renewed(record: Record, *, now_us: int, lease_us: int) -> Record:
    """The same attempt, for longer; as it is when the attempt has ended meanwhile."""
    if record.state == "FINALIZED" or not record.lease_until_us:
        return record
    return structs.replace(record, updated_us=now_us, lease_until_us=now_us + lease_us)


def released(record: Record, *, now_us: int) -> Record:
    """The attempt ended without an outcome that could be told again: anyone may try at once."""
    return structs.replace(record, updated_us=now_us, lease_until_us=0)


def finalized(
    record: Record,
    *,
    now_us: int,
    status: int,
    is_in_chain: bool,
    sealed: bytes = b"",
    parts: tuple[ObjId, ...] = (),
) -> Record:
    """The outcome is settled."""
    return structs.replace(
        record,
        state="FINALIZED",
        updated_us=now_us,
        lease_until_us=0,
        holder="",
        status=status,
        is_in_chain=is_in_chain,
        sealed=sealed,
        parts=parts,
    )
