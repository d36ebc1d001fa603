"""What a commit keeps of a request with an Idempotency-Key, so that its answer can be given again.

An operation says with a `Recall` how its result comes back: `NOTHING` for those without one, `Kept` for small
results that are stored beside the change, `Sealed` for those with secrets, or one of its own that finds the
result in the state the commit made (a table is there already, and large).

Must not break: what `recall` gives is what the first attempt was given, also when others have changed the
same entity since, or in the same commit. So it starts from what the request itself kept or changed
(`Done.record`), not from names.
"""

from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from cynosure.auth.request_key import RequestKey
from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import RequestRecord, State
from cynosure.persistence.objects import ObjRef

R = TypeVar("R")
_encode = msgspec.msgpack.Encoder().encode


class Receipt(Struct, frozen=True, array_like=True):
    """What is stored with a request that has a key."""

    payload_hash: bytes
    kind: Literal["answer", "refusal"]
    data: bytes


class Done(NamedTuple):
    """A request of an earlier attempt, found in the chain by its key."""

    record: RequestRecord
    data: bytes
    """What `Recall.keep` kept."""
    after: State
    """The state its commit made; others may have been in that commit too."""
    before: State
    """The state that was replaced."""
    key: RequestKey

    def find_after(self, *kinds: str) -> ObjRef:
        """What the first of the request's changes of these kinds put in place."""
        for change in self.record.changes:
            if change.kind in kinds and change.after is not None:
                return ObjRef.unpack(change.after)
        raise CorruptObject("A commit lacks the change its answer is given from", kinds=kinds)


class Recall(Protocol[R]):
    """How the result of an operation comes back from its commit."""

    def keep(self, result: R, key: RequestKey) -> bytes:
        """What has to be stored for that beside the change itself."""
        ...

    async def recall(self, done: Done) -> R:
        """The result, as it was."""
        ...


class _Nothing:
    def keep(self, result: None, key: RequestKey) -> bytes:
        return b""

    async def recall(self, done: Done) -> None:
        return None


NOTHING: Recall[None] = _Nothing()
"""Of operations that give nothing back."""


class Kept(Generic[R]):
    """Of operations with a small result: it is stored as it is."""

    def __init__(self, result_type: Any) -> None:
        self._decode = msgspec.msgpack.Decoder(result_type).decode

    def keep(self, result: R, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return _encode(result)

    async def recall(self, done: Done) -> R:
        """See `Recall.recall`."""
        result: R = self._decode(done.data)
        return result


class Sealed(Kept[R]):
    """As `Kept`, for results with secrets: only a request with the same Idempotency-Key can open them."""

    def keep(self, result: R, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return key.seal(super().keep(result, key))

    async def recall(self, done: Done) -> R:
        """See `Recall.recall`."""
        return await super().recall(done._replace(data=done.key.open(done.data)))


def pack_receipt(key: RequestKey, kind: Literal["answer", "refusal"], data: bytes) -> bytes:
    """A receipt in its stored form."""
    return _encode(Receipt(bytes.fromhex(key.payload_hash), kind, data))


_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode


def unpack_receipt(stored: bytes) -> Receipt:
    """A receipt from its stored form."""
    try:
        return _decode_receipt(stored)
    except msgspec.DecodeError as error:
        raise CorruptObject("A receipt of a commit does not decode") from error
