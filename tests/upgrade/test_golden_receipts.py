"""What commits and records keep of requests with an Idempotency-Key, as each version wrote it.

These bytes are inside other objects, and a server of the next version must read them for as long as keys are
known: requests are repeated across an upgrade.
"""

import pytest

from cynosure.auth.receipts import pack_receipt, unpack_receipt
from cynosure.auth.request_key import Peppers, RequestKey
from cynosure.common.errors import CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.idempotency.record import Answer, unpack_answer

_RECEIPT = bytes.fromhex("93c420" + "cd" * 32 + "a6616e73776572c404646f6e65")
_ANSWER = bytes.fromhex("93cd01999192c40465746167c403226122c4027b7d")
_SEALED = bytes.fromhex("026b316ef0b7b40f25f726ea18c23e13b4f320479f928f9e0a6ef940028692d6ed72060bdc378a46")


def make_key(text: str = "019a8b52-6a0c-7d3e-9f61-2b1c8e7d5a40", primary: str = "k1") -> RequestKey:
    return RequestKey(
        text,
        key_hash="ab" * 32,
        payload_hash="cd" * 32,
        describe_refusal=lambda error: None,
        peppers=Peppers(lambda: Keyring({"k1": bytes(range(32)), "k2": bytes(32)}, primary)),
    )


def test_a_receipt_is_read_and_written_as_it_was() -> None:
    receipt = unpack_receipt(_RECEIPT)

    assert (receipt.payload_hash.hex(), receipt.kind, receipt.data) == ("cd" * 32, "answer", b"done")
    assert pack_receipt(make_key(), "answer", b"done").hex() == _RECEIPT.hex()


def test_an_answer_is_read_and_written_as_it_was() -> None:
    answer = unpack_answer(_ANSWER)

    assert answer == Answer(409, ((b"etag", b'"a"'),), b"{}")
    assert answer.pack().hex() == _ANSWER.hex()


@pytest.mark.parametrize("primary", ["k1", "k2"])
def test_what_was_sealed_opens_also_when_another_master_key_is_used_by_now(primary: str) -> None:
    assert make_key(primary=primary).open(_SEALED) == b"an answer"


def test_what_was_sealed_opens_with_its_own_text_only() -> None:
    with pytest.raises(CorruptObject):
        make_key("another").open(_SEALED)
