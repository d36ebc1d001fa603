"""Pages of names for remotes that give all of them at once: in their order, each behind the last one."""

from collections.abc import Iterable
from typing import Final

from cynosure.federation.remote import NamesPage

_OWN: Final = "after:"


def page_after(names: Iterable[str], token: str | None, size: int) -> NamesPage:
    """The names behind `token`, at most so many. The token is the last name of the page before."""
    left = sorted(each for each in names if token is None or each > token)
    return NamesPage(left[:size], left[size - 1] if len(left) > size else None)


def is_own_token(token: str | None) -> bool:
    """Whether a token is one of `page_of_all`, not the remote's."""
    return token is not None and token.startswith(_OWN)


def page_of_all(names: Iterable[str], token: str | None, size: int) -> NamesPage:
    """As `page_after`, of a remote that has pages and gave more than it was asked for, as moto does."""
    after = token.removeprefix(_OWN) if token is not None and is_own_token(token) else None
    page = page_after(names, after, size)
    return page if page.next_token is None else NamesPage(page.names, f"{_OWN}{page.next_token}")
