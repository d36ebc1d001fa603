"""Pages of names out of a remote's lists, also of remotes that know no pages.

A remote may answer more than was asked for, up to everything it has. Such an answer is sorted and cut here,
and the token says behind which name to go on: the same list is asked for again then, and nothing of it is
kept. Names that cannot be names here are passed on as well: whoever asked tells of them, or refuses.

A maintainer must not break: tokens are bounded, and a remote that never comes to an end is noticed.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cynosure.catalog.names import MAX_CHARS
from cynosure.common.errors import BadPageToken
from cynosure.federation.remote import NamesPage
from cynosure.federation.remotes.rest.answers import Fail

_MOST_TOKEN_CHARS: Final = 4_096
_MOST_NAME_CHARS: Final = MAX_CHARS + 1
_MOST_BLANKS: Final = 50
"""Pages without a name, one after the other."""


class RemotePage(NamedTuple):
    """What the remote answered."""

    names: Sequence[str]
    next_token: str | None


class _Place(Struct, array_like=True, frozen=True):
    """Where a list goes on."""

    token: str = ""
    """The remote's."""
    after: str | None = None
    """Of an answer that was longer than a page: behind this name."""
    blanks: int = 0


async def list_page(
    ask: Callable[[Sequence[tuple[str, str]]], Awaitable[RemotePage]],
    token: str | None,
    size: int,
    fail: Fail,
) -> NamesPage:
    """A page of at most `size` names. `ask` is given the paging of the query."""
    place = _Place() if token is None else _open(token)
    page = await ask([("pageToken", place.token), ("pageSize", str(size))])
    # Longer names can be none here anyhow: whoever tells so tells their beginning.
    names = [name[:_MOST_NAME_CHARS] for name in page.names]
    if place.after is not None or len(names) > size:
        names = sorted(each for each in names if place.after is None or each > place.after)
    if len(names) > size:
        cut = names[:size]
        return NamesPage(cut, _seal(_Place(place.token, cut[-1])))
    if not page.next_token:
        return NamesPage(names)
    if len(page.next_token) > _MOST_TOKEN_CHARS:
        raise fail("a page token that is too long")
    if page.next_token == place.token:
        raise fail("the same page again")
    blanks = 0 if names else place.blanks + 1
    if blanks > _MOST_BLANKS:
        raise fail("pages without end")
    return NamesPage(names, _seal(_Place(page.next_token, None, blanks)))


def _seal(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode("ascii")


def _open(token: str) -> _Place:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token.encode("ascii")), type=_Place)
    except (msgspec.DecodeError, binascii.Error, ValueError) as error:
        raise BadPageToken(
            "The page token was not issued for this listing",
            field="pageToken",
            fix="Pass the token exactly as it was returned for this listing, or list again without one.",
        ) from error
