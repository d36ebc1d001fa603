"""What an order to purge may say besides.

A maintainer must not break: an instruction that is not known is refused: whoever gives one relies on it.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.storage.fileio import FileInfo

FOLDER_SUFFIX: Final = "_$folder$"
"""How Hadoop marks a directory in an object store."""
_KNOWN: Final = ("skipTrash", "deleteMarkerFiles", "dryRun")


class PurgeInstructions(Struct, frozen=True):
    """What was asked for."""

    deletes_markers: bool = True
    """Also files that only say that there is a directory, and empty directories."""
    is_dry_run: bool = False
    """Count and report; delete nothing."""

    def keeps(self, found: FileInfo) -> bool:
        """Whether a file is to stay."""
        if self.deletes_markers or found.size_bytes:
            return False
        return found.location.segments[-1].endswith(FOLDER_SUFFIX)


def read_instructions(properties: Mapping[str, str]) -> PurgeInstructions:
    """The instructions of an order; `BadInput` names one that cannot be followed."""
    given = Instructions(properties, _KNOWN)
    if not given.find_flag("skipTrash", default=True):
        raise BadInput(
            "There is no trash to move files to",
            field="operation_parameters.properties.skipTrash",
            fix="Use true, or leave it out: object stores have no trash.",
        )
    return PurgeInstructions(
        deletes_markers=given.find_flag("deleteMarkerFiles", default=True),
        is_dry_run=given.find_flag("dryRun", default=False),
    )
