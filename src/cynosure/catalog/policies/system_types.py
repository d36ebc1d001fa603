"""The types of policies that Apache Polaris has too: what engines are to do to keep tables in shape.

The content is a JSON object. Only `enable` must be in it. What `config` says is read where policies are run
(`catalog.upkeep.rules`).

Must not break: what Polaris accepts is accepted, and what it refuses is refused: contents are taken over from
one to the other as they are. Only keys of `config` that are our own (`maintenance_config.py`) are checked
here: whoever writes one means this server.
"""

import re
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.policies.maintenance_config import POLICY_TASKS, find_ours_malformed
from cynosure.catalog.policies.types import Attachable, PolicyType, Surroundings
from cynosure.persistence.commit import View

_PLACE: Final = re.compile(r"^(?P<what>.*?) - at `(?P<key>key in )?\$(?P<path>.*)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`")
_MISSING: Final = re.compile(r"missing required field `(?P<name>[^`]*)`")


class MaintenanceContent(Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy of maintenance says."""

    enable: bool
    version: Literal["2025-02-03"] | UnsetType = UNSET
    config: dict[str, str | bool | int | float] = {}


class OrphanFileContent(MaintenanceContent, frozen=True, forbid_unknown_fields=True):
    """What a policy about files that belong to nothing says."""

    max_orphan_file_age_in_days: Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    locations: tuple[str, ...] | UnsetType = UNSET


class SystemType(Struct, frozen=True):
    """One of these types."""

    name: str
    content: type[MaintenanceContent] = MaintenanceContent

    @property
    def is_inheritable(self) -> bool:
        """See `PolicyType`."""
        return True

    @property
    def is_restriction(self) -> bool:
        """See `PolicyType`."""
        return False

    def parse(self, content: str) -> object:
        """See `PolicyType`."""
        parsed = decode_content(content, self.content)
        assert isinstance(parsed, MaintenanceContent)  # noqa: S101 - it is the type that was decoded
        wrong = find_ours_malformed(POLICY_TASKS[self.name], parsed.config)
        if wrong is not None:
            raise InvalidPolicy(
                "A key of the policy cannot be understood",
                field=f"content.config.{wrong[0]}",
                fix=f"Use {wrong[1]}.",
            )
        return parsed

    async def check_target(
        self, parsed: object, surroundings: Surroundings, view: View, target: Attachable
    ) -> object:
        """See `PolicyType`. Whatever is kept in shape may have such a policy."""
        return None


def decode_content(content: str, content_type: type[Struct]) -> object:
    """A JSON object in a policy's content; `InvalidPolicy` names the field, as in `content.enable`."""
    try:
        return msgspec.json.decode(content.encode(), type=content_type)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidPolicy(
            "The content of the policy is not valid JSON",
            field="content",
            fix="Send a JSON object as a string.",
            reason=str(error),
        ) from None


def _invalid(text: str) -> InvalidPolicy:
    place = _PLACE.match(text)
    what, path = (place["what"], place["path"]) if place else (text, "")
    named = _UNKNOWN.search(what) or _MISSING.search(what)
    if named:
        path = f"{path}.{named['name']}"
    return InvalidPolicy(
        "The content of the policy does not have the shape of its type",
        field=f"content{path}",
        fix="Correct this field, or leave it out if it is not one of the type.",
        reason=what,
    )


SYSTEM_TYPES: Final[tuple[PolicyType, ...]] = (
    SystemType("system.data-compaction"),
    SystemType("system.metadata-compaction"),
    SystemType("system.orphan-file-removal", OrphanFileContent),
    SystemType("system.snapshot-expiry"),
)
