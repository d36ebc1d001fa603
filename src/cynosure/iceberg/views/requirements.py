"""What a client may require of a view before its updates are applied."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata, RequirementFailed
from cynosure.iceberg.views.metadata import ViewMetadata
from cynosure.iceberg.views.updates import refuse_update


class AssertViewUuid(Struct, frozen=True, tag_field="type", tag="assert-view-uuid"):
    """The view must still be the one that the client read, not another under its name."""

    uuid: str


ViewRequirement: TypeAlias = AssertViewUuid


def decode_view_requirements(json: bytes | Raw, *, field: str = "requirements") -> list[ViewRequirement]:
    """The list of requirements of a commit."""
    try:
        return decode_json(compact_json(json, field=field), _REQUIREMENTS, field=field)
    except InvalidMetadata as error:
        raise refuse_update(error) from error


def check_view_requirements(view: ViewMetadata | None, requirements: Sequence[ViewRequirement]) -> None:
    """Raise `RequirementFailed` for the first that does not hold. None is a view that is not there."""
    for requirement in requirements:
        if view is None:
            raise RequirementFailed("view does not exist")
        if view.view_uuid.lower() != requirement.uuid.lower():
            raise RequirementFailed(
                f"view UUID does not match: expected {view.view_uuid} != {requirement.uuid}"
            )


_REQUIREMENTS: Final = msgspec.json.Decoder(list[AssertViewUuid])
