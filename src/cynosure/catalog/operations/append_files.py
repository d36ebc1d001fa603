"""Append files to a table: the server chooses ids and numbers, and writes manifests and snapshot.

Appends never conflict with each other or with anything else that leaves the table in place.

Must not break: files are checked against the table as it is when they are added (`appending/addition.py`).
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Done, Kept
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.together import Append, commit_append
from cynosure.catalog.appending.work import Appended, Outcome
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog

_ANSWER = Kept[Appended](Appended)


class _RecalledAnswer:
    """What was answered is small, and all that is asked for again."""

    def keep(self, result: Outcome, key: RequestKey) -> bytes:
        assert result.appended is not None  # noqa: S101 - files were added
        return _ANSWER.keep(result.appended, key)

    async def recall(self, done: Done) -> Outcome:
        return Outcome(None, await _ANSWER.recall(done))


async def append_files(
    catalog: OpenCatalog, caller: Caller, table: Identifier, addition: Addition
) -> Appended:
    """Add files to a branch of a table."""
    append = Append(caller, ops.APPEND_FILES, table, addition, _RecalledAnswer())
    outcome = await commit_append(catalog, append)
    assert outcome.appended is not None  # noqa: S101 - an addition always has it
    return outcome.appended
