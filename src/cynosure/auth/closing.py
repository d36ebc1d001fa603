"""Closing a realm, the first step of deleting it (`realms.py`): a mark that every later write asks for.

Must not break: whoever commits to a realm's `catalogs` or `principals` calls `require_open` with the view it
prepares on. A write that was prepared before the realm was closed is then prepared again, and refused.
"""

from typing import Final

from cynosure.auth.errors import RealmClosed
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_key

CLOSED: Final = encode_key("closed")
"""Present in `marks` of a realm's `catalogs` and `principals` while the realm is being deleted."""


async def is_closed(view: View) -> bool:
    """Whether the realm is being deleted: nobody has any rights in it any more."""
    return await view.find("marks", CLOSED) is not None


async def require_open(view: View) -> None:
    """Refuse what would be written to a realm that is being deleted."""
    if await is_closed(view):
        raise RealmClosed("The realm is being deleted", fix="Wait until it is gone, or use another realm.")
