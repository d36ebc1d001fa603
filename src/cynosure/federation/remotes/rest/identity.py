"""Who we are to a remote: what is added to each request to prove it.

A maintainer must not break: what proves it is the connection's own, or nothing; and no header holds anything
that a token endpoint sent which is not a plain token.
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol

import httpx
from msgspec import Struct

from cynosure.common.secrets import Secret

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")


class Outgoing(Struct, frozen=True):
    """A request as it is sent."""

    method: str
    url: httpx.URL
    query: str
    """Of the URL, as it is signed."""
    body: bytes


class Proof(Struct, frozen=True):
    """Headers that prove who sends a request."""

    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "Proof(…)"


class Identity(Protocol):
    """Proves requests."""

    async def prove(self, outgoing: Outgoing) -> Proof:
        """The proof of a request. An error of a remote when none can be had."""
        ...

    async def renew(self, refused: Proof) -> bool:
        """After the remote did not accept a proof: whether another one is worth an attempt."""
        ...

    async def close(self) -> None:
        """End what is under way."""
        ...


class Fixed:
    """The same proof for every request: a token that an operator set, or none at all."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    async def prove(self, outgoing: Outgoing) -> Proof:  # noqa: D102
        return self._proof

    async def renew(self, refused: Proof) -> bool:  # noqa: D102
        return False

    async def close(self) -> None:  # noqa: D102
        return


def is_token(text: str) -> bool:
    """Whether a header can hold it."""
    return bool(_TOKEN.fullmatch(text))


def bearer(token: Secret) -> Proof:
    """The proof that a token is."""
    return Proof({"authorization": f"Bearer {token.reveal()}"})
