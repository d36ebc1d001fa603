"""The one error tree. Rooms extend it and raise nothing else.

CynosureError
├── BadInput                the caller's value is wrong; names the field and the fix
│   ├── BadPageToken        forged, truncated, foreign or damaged token
│   └── TooLarge            the value cannot be stored at that size
├── Expired                 a token, cursor or window that was valid once
├── NotAuthenticated        nobody knows who asks: no credential, or one that is not good (any more)
├── Forbidden               the caller is known and may not do this
├── NotFound                no such thing
├── AlreadyExists           the name is taken
├── Conflict                the caller's requirement does not hold on the current state
├── KeyReused               an Idempotency-Key that stands for another request
├── Unavailable             nothing was applied; trying again is safe
│   ├── Contended           too many writers for too long; nothing was applied
│   ├── LeaseLost           this process no longer holds what it needs to act
│   └── ClockFault          this machine's clock cannot be trusted now
├── OutcomeUnknown          it may or may not have been applied; never retry blindly
├── Damaged                 stored data is not what it must be; nothing was changed
│   ├── MissingObject       a reachable object is not in the database
│   ├── CorruptObject       the bytes fail their checksum or do not decode
│   ├── NewerFormat         written by a newer version than this one
│   └── UnknownType         no installed package knows this object type
└── Misconfigured           refused at start-up

Three outcomes never merge: a lost race is a *value* (the commit loop expects it many times a
second), a refusal is an error, and `OutcomeUnknown` is its own error: turning it into either of the
others loses commits or applies them twice.

The message of an error is constant text; what varies goes into keyword details, so that logs can
be counted. Details are safe to log: never a credential, never row data. HTTP appears in one place
only, `cynosure.api.errors`, which maps every type of this tree to a status.
"""

from typing import Any


class CynosureError(Exception):
    """Root of everything this project raises on purpose."""

    def __init__(self, message: str, *, fix: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        """What the reader can do about it, as an imperative sentence. Empty when nothing can be done."""
        self.details = details

    def __str__(self) -> str:
        varying = ", ".join(f"{name}={value!r}" for name, value in self.details.items())
        text = f"{self.message} ({varying})" if varying else self.message
        return f"{text}. {self.fix}" if self.fix else text


class Named:
    """Puts what is named right behind the message: for texts that clients of a protocol read."""

    message: str
    fix: str
    details: dict[str, Any]

    def __str__(self) -> str:
        text = f"{self.message}: {self.details['name']}"
        return f"{text}. {self.fix}" if self.fix else text


class BadInput(CynosureError):
    """The caller's value is wrong. `field` names it, `fix` says what would be right."""

    def __init__(self, message: str, *, field: str, fix: str, **details: Any) -> None:
        super().__init__(message, fix=fix, field=field, **details)
        self.field = field


class BadPageToken(BadInput):
    """A page token that this server did not issue for this listing."""


class TooLarge(BadInput):
    """A value that cannot be stored at this size."""


class Expired(CynosureError):
    """Something that was valid once: a page token, a cursor, a restore window."""


class NotAuthenticated(CynosureError):
    """No credential, or none that is good. Says no more than that to whoever may be a stranger."""


class Forbidden(CynosureError):
    """The caller is known and may not do this."""


class NotFound(CynosureError):
    """No such thing."""


class AlreadyExists(CynosureError):
    """The name is taken."""


class Conflict(CynosureError):
    """The caller's requirement does not hold on the current state."""


class KeyReused(CynosureError):
    """The Idempotency-Key stands for another request."""

    def __init__(self) -> None:
        super().__init__(
            "The Idempotency-Key was used for a request with another payload",
            fix="Repeat a key only with the very same request; use a new key for every new one.",
        )


class Unavailable(CynosureError):
    """Something we depend on did not answer. Nothing was applied: trying again is safe."""


class Contended(Unavailable):
    """Other writers won until the deadline. Nothing was applied."""


class LeaseLost(Unavailable):
    """This process no longer holds the lease it needs to act."""


class ClockFault(Unavailable):
    """This machine's clock stepped back or disagrees with the store."""


class OutcomeUnknown(CynosureError):
    """It may or may not have been applied. Only the commit loop may go on from here."""


class Damaged(CynosureError):
    """Stored data is not what it must be. Nothing was changed by finding out."""


class MissingObject(Damaged):
    """A reachable object is not in the database."""


class CorruptObject(Damaged):
    """Stored bytes fail their checksum or do not decode as their type."""


class NewerFormat(Damaged):
    """Stored bytes were written by a newer version than this one."""


class UnknownType(Damaged):
    """No installed package knows this object type."""


class Misconfigured(CynosureError):
    """Settings that cannot work. Raised at start-up, before anything is served."""
