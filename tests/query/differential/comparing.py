"""Whether two answers are the same: names, types and rows exactly, floats to 12 digits."""

from typing import Any

import pyarrow as pa

from tests.query.differential.world import Answer
from tests.query.local.comparing import explain_difference

REFUSED = "No engine of this gateway runs this statement"


def find_difference(found: Answer, wanted: Answer, *, is_ordered: bool) -> str | None:
    """What differs first; None when nothing does. Two failures are the same if they are of one kind."""
    if isinstance(found, dict) or isinstance(wanted, dict):
        told, expected = _kind(found), _kind(wanted)
        return None if told == expected else f"{_shown(found)}, of the copy {_shown(wanted)}"
    if found.column_names != wanted.column_names:
        return f"columns {found.column_names}, of the copy {wanted.column_names}"
    for name, one, other in zip(found.column_names, found.schema.types, wanted.schema.types, strict=True):
        if one != other:
            return f"{name}: type {one}, of the copy {other}"
    return explain_difference(found, wanted, is_ordered=is_ordered)


def is_refused(answer: Answer) -> bool:
    """Whether an engine does not know this statement."""
    return isinstance(answer, dict) and answer["message"] == REFUSED


def _kind(answer: Answer) -> Any:
    if isinstance(answer, pa.Table):
        return "rows"
    return answer["code"], answer["type"], answer.get("details", {}).get("condition")


def _shown(answer: Answer) -> str:
    return f"{answer.num_rows} rows" if isinstance(answer, pa.Table) else str(answer)
