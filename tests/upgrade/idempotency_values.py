"""One value of every stored type of the idempotency room, in each of its states, for the golden bytes.

A maintainer must not break: these values never change, as in `values.py`.
"""

from cynosure.idempotency.record import PART, RECORD, Part, Record, finalized, released, taken_over
from cynosure.persistence.spi import ObjId

_AT_US = 1_767_225_600_000_000
_LEASE_US = 10_000_000
_BEGUN = Record(
    key_hash="ab" * 32,
    realm="default",
    method="POST",
    path="/api/catalog/v1/lake/namespaces/a%1Fb/tables",
    principal="etl",
    payload_hash="cd" * 32,
    created_us=_AT_US,
    updated_us=_AT_US,
    expires_us=_AT_US + 2_100_000_000,
    holder="catalog-1 4711",
    lease_until_us=_AT_US + _LEASE_US,
)
_AGAIN = taken_over(_BEGUN, holder="catalog-2 12", now_us=_AT_US + _LEASE_US, lease_us=_LEASE_US)
_ENDED_US = _AT_US + 11_000_000

IDEMPOTENCY_VALUES = {
    "idempotency-record": (RECORD, _BEGUN),
    "idempotency-record-taken-over": (RECORD, _AGAIN),
    "idempotency-record-released": (RECORD, released(_AGAIN, now_us=_ENDED_US)),
    "idempotency-record-in-chain": (
        RECORD,
        finalized(_BEGUN, now_us=_ENDED_US, status=200, is_in_chain=True),
    ),
    "idempotency-record-refused": (
        RECORD,
        finalized(_AGAIN, now_us=_ENDED_US, status=409, is_in_chain=False, sealed=bytes(range(64))),
    ),
    "idempotency-record-in-parts": (
        RECORD,
        finalized(_BEGUN, now_us=_ENDED_US, status=200, is_in_chain=False, parts=(ObjId(7001), ObjId(7002))),
    ),
    "idempotency-part": (PART, Part(data=bytes(range(256)))),
}
