"""What every backend checks before a key or a row reaches its driver.

Databases disagree on NUL, lone surrogates, empty and long keys; these rules (written in `spi.py`) keep
to what all of them can hold. A maintainer must not break: a check runs before anything is sent, so a
refused call has applied nothing.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NoReturn

from cynosure.common.errors import BadInput, TooLarge
from cynosure.persistence.spi import (
    MAX_ID,
    TEXT_BYTES,
    ConditionalWrite,
    DeleteIf,
    Limits,
    ObjKey,
    Reference,
    RefKey,
    Row,
    Swap,
)

_REMEMBERED: Final = 4096


def check_obj_keys(keys: Iterable[ObjKey]) -> None:
    """Refuse keys that some database cannot hold."""
    for key in keys:
        _check_type(key.realm, key.catalog, key.type)
        # Zero is an id: node ids are leased under `node << 12` (persistence.ids), and node 0 is one of them.
        _check_number("id", key.id, lowest=0)


def check_ref_keys(keys: Iterable[RefKey]) -> None:
    """Refuse reference keys that some database cannot hold."""
    for key in keys:
        _check_name(key.realm, key.catalog, key.name)


def check_realm(realm: str) -> None:
    """Refuse a realm that cannot be part of a key."""
    _check_text("realm", realm)


def check_immutable(rows: Iterable[Row], limits: Limits) -> None:
    """Refuse rows that `write` and `swap_ref` cannot store."""
    for row in rows:
        if row.token:
            raise BadInput(
                "An immutable row has no version token",
                field="token",
                fix="Leave the token empty, or use insert and swap for rows that change.",
                type=row.key.type,
            )
        _check_row(row, limits)


def check_conditional(row: Row, limits: Limits) -> None:
    """Refuse a row that `insert` and `swap` cannot store."""
    _check_row(row, limits)
    _check_text("token", row.token)


def check_token(token: str) -> None:
    """Refuse a token that no conditionally written row can have, the empty one above all."""
    _check_text("token", token)


def check_each(writes: Sequence[ConditionalWrite], limits: Limits) -> None:
    """Refuse conditional writes of which one cannot be stored, or two are about the same row."""
    for write in writes:
        check_write(write, limits)
    if len({write.key for write in writes}) != len(writes):
        raise BadInput(
            "One call writes the same row twice",
            field="writes",
            fix="Send the second write in another call: the writes of one call have no order.",
        )


def check_write(write: ConditionalWrite, limits: Limits) -> None:
    """Refuse a conditional write that cannot be stored."""
    if isinstance(write, DeleteIf):
        check_obj_keys((write.key,))
        check_token(write.expected_token)
        return
    check_conditional(write.row, limits)
    if isinstance(write, Swap):
        check_token(write.expected_token)


def check_ref(ref: Reference) -> None:
    """Refuse a reference that some database cannot hold."""
    check_ref_keys((ref.key,))
    _check_number("head", ref.head, lowest=0)
    _check_number("generation", ref.generation, lowest=0)
    _check_number("created_us", ref.created_us, lowest=0)
    if ref.recent:
        _check_number("recent", min(ref.recent), lowest=0)
        _check_number("recent", max(ref.recent), lowest=0)


def check_move(expected: Reference, updated: Reference) -> None:
    """Refuse a swap of one reference against another one."""
    if expected.key != updated.key:
        raise BadInput(
            "A swap moves one reference, not one to the place of another",
            field="key",
            fix="Use the key of the expected reference in the updated one.",
        )
    check_ref(updated)


def check_scan(after: ObjKey | None, limit: int) -> None:
    """Refuse a page that could hold nothing (an empty page means the end) or begins nowhere."""
    _check_number("limit", limit, lowest=1)
    if after is not None:
        check_obj_keys((after,))


def _check_row(row: Row, limits: Limits) -> None:
    check_obj_keys((row.key,))
    _check_number("created_us", row.created_us, lowest=0)
    if len(row.blob) > limits.row_bytes:
        raise TooLarge(
            "The row is larger than this database stores",
            field="blob",
            fix="Split the object into parts.",
            type=row.key.type,
            blob_bytes=len(row.blob),
            limit_bytes=limits.row_bytes,
        )


# Remembered: a process meets few of these texts, and each of them in thousands of keys.
@lru_cache(_REMEMBERED)
def _check_type(realm: str, catalog: str, type: str) -> None:
    _check_text("realm", realm)
    _check_text("catalog", catalog)
    _check_text("type", type)


@lru_cache(_REMEMBERED)
def _check_name(realm: str, catalog: str, name: str) -> None:
    _check_text("realm", realm)
    _check_text("catalog", catalog)
    _check_text("name", name)


def _check_text(field: str, text: str) -> None:
    # One pass in C for what nearly all keys are: short ASCII.
    if text.isascii():
        if 0 < len(text) <= TEXT_BYTES and "\0" not in text:
            return
        _refuse_text(field)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        _refuse_text(field)
    if len(encoded) > TEXT_BYTES or b"\0" in encoded:
        _refuse_text(field)


def _refuse_text(field: str) -> NoReturn:
    # The text itself may be anything, so it stays out of the message.
    raise BadInput(
        "This text cannot be part of a key",
        field=field,
        fix=f"Use 1 to {TEXT_BYTES} bytes of UTF-8 without NUL and without lone surrogates.",
    ) from None


def _check_number(field: str, number: int, *, lowest: int) -> None:
    if not lowest <= number <= MAX_ID:
        raise BadInput(
            "This number cannot be stored",
            field=field,
            fix=f"Use a whole number from {lowest} to {MAX_ID}.",
        )
