"""What all handlers of this API read from a request in the same way, and its times."""

from typing import Final, TypeVar

from cynosure.api.messages import Request
from cynosure.auth.caller import Caller
from cynosure.auth.names import check_name
from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput

BASE: Final = "/api/management/v1"

T = TypeVar("T")


def required(value: T | None, field: str) -> T:
    """A part of the body that the document forgot to require."""
    if value is None:
        raise missing(field)
    return value


def missing(field: str) -> BadInput:
    """What to raise for a part of the body that is not there."""
    return BadInput("A field of the body is missing", field=field, fix="Send it.")


async def catalog_of(directory: Directory, caller: Caller, request: Request) -> OpenCatalog:
    """The catalog that the path names."""
    return await directory.open_for(caller, name_of(request, "catalogName"))


def name_of(request: Request, parameter: str) -> str:
    """A name in the path; one that nothing can have is refused as that."""
    return check_name(request.params[parameter], field=parameter)


def to_ms(time_us: int) -> int:
    """A time as clients read it."""
    return time_us // 1000
