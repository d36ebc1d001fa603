"""What a client may require of a view before its updates are applied."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import decode_json
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.views.metadata import ViewMetadata


class AssertViewUuid(Struct, frozen=True, tag_field="type", tag="assert-view-uuid"):
    """The view must still be the one that the client read, not another under its name."""

    uuid: str


ViewRequirement: TypeAlias = AssertViewUuid


def decode_view_requirements(json: bytes | Raw, *, field: str = "requirements") -> list[ViewRequirement]:
    """The list of requirements of a commit."""
    return decode_json(json, _REQUIREMENTS, field=field)


def check_view_requirements(view: ViewMetadata | None, requirements: Sequence[ViewRequirement]) -> None:
    """Raise `RequirementFailed` for the first that does not hold. None is a view that is not there."""
    for requirement in requirements:
        if view is None:
            raise RequirementFailed("view does not exist")
        if view.view_uuid.lower() != requirement.uuid.lower():
            raise RequirementFailed(
                f"view UUID does not match: expected {requirement.uuid} != {view.view_uuid}"
            )


_REQUIREMENTS: Final = msgspec.json.Decoder(list[AssertViewUuid])
