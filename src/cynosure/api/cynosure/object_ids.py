"""Ids of the store in paths: decimal text, as answers tell them (JSON's numbers are too small for them).

Must not break: what is no id is refused by name, and never reaches an index as something else.
"""

from cynosure.common.errors import BadInput
from cynosure.persistence.index.keys import MAX_ID
from cynosure.persistence.spi import ObjId


def parse_object_id(text: str, *, of: str, fix: str) -> ObjId:
    """The id in the path; `of` says what of."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ID)) and int(text) <= MAX_ID):
        raise BadInput(f"Not the id of a {of}", field="id", fix=fix)
    return ObjId(int(text))
