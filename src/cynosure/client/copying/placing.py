"""The place of a copy: the same one whenever the same table is copied.

So what an earlier attempt wrote is found again.
"""

import uuid
from hashlib import sha256
from typing import Final

from cynosure.client.copying.ends import End, Opened, Path
from cynosure.common.errors import Forbidden

_MOST: Final = 9
"""Places that are tried: a copy that was renamed or dropped still has the first."""


async def place_copy(ours: End, path: Path, source_uuid: str) -> Opened:
    """A place for the copy of a table, with access to write there."""
    proposed = await ours.propose(path)
    # The catalog puts an id of its own behind the name; the table's stands there instead.
    stem = proposed.rstrip("/").rpartition("-")[0]
    name = f"{stem}-{_spell(source_uuid)}"
    for number in range(1, _MOST):
        try:
            return await ours.stage(path, name if number == 1 else f"{name}-{number}")
        except Forbidden as error:
            if error.details.get("field") != "location":
                raise
    return await ours.stage(path, f"{name}-{_MOST}")


def _spell(source_uuid: str) -> str:
    try:
        return str(uuid.UUID(source_uuid))
    except ValueError:
        # A remote may call anything a uuid, and this is part of a path.
        return sha256(source_uuid.encode()).hexdigest()[:32]
