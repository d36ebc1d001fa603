"""What goes over the line between a process and its Spark driver: JSON lines.

A maintainer must not break: an error arrives as the type that it was; what somebody must not retry, or must
retry, is decided by that type.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.common.delegated.settings import SparkSettings
from cynosure.common.errors import CynosureError, Unavailable

FD_VARIABLE: Final = "CYNOSURE_SPARK_FD"
MAX_LINE_BYTES: Final = 256 * 2**20
_COMMON: Final = frozenset({"message", "fix", "details"})


class Told(Struct, frozen=True):
    """An error on its way."""

    type: str
    message: str
    fix: str = ""
    details: dict[str, str] = {}
    attributes: dict[str, str | int] = {}
    """What errors of this type keep besides: a code, a field."""


class Start(Struct, frozen=True, tag=True):
    """The first line: what session to open."""

    master: str
    remote: str | None
    driver_memory: int
    jars: str | None
    config: dict[str, str]
    jobs: dict[str, str]
    """By name, where they are: `module:function`."""
    scratch: str
    kind: str
    """Where what the driver is for is (`kinds.DriverKind`): `module:name`."""
    java_options: tuple[str, ...] = ()

    @property
    def settings(self) -> SparkSettings:
        """As they were given."""
        return SparkSettings(
            master=self.master,
            remote=self.remote,
            driver_memory=self.driver_memory,
            jars=Path(self.jars) if self.jars else None,
            config=self.config,
        )


class Run(Struct, frozen=True, tag=True):
    """Run a job."""

    run: int
    job: str
    task_id: str
    description: str
    parameters: dict[str, Any]


class Cancel(Struct, frozen=True, tag=True):
    """Nobody waits for this run any more."""

    run: int


class Answer(Struct, frozen=True, tag=True):
    """To what a job asked."""

    ask: int
    value: Any = None
    error: Told | None = None


class Stop(Struct, frozen=True, tag=True):
    """End."""


class Ready(Struct, frozen=True, tag=True):
    """The session is open, or cannot be."""

    error: Told | None = None


class Ask(Struct, frozen=True, tag=True):
    """A question of a job. What can be asked is between the job and whoever runs it."""

    run: int
    ask: int
    what: str
    value: Any = None


class Ended(Struct, frozen=True, tag=True):
    """What became of a run."""

    run: int
    value: dict[str, Any] | None = None
    error: Told | None = None


Down = Start | Run | Cancel | Answer | Stop
Up = Ready | Ask | Ended
_DOWN: Final = msgspec.json.Decoder(Down)
_UP: Final = msgspec.json.Decoder(Up)


def encode(message: Down | Up) -> bytes:
    """A line."""
    return msgspec.json.encode(message) + b"\n"


def decode_down(line: bytes) -> Down:
    """A line that a driver got."""
    message: Down = _DOWN.decode(line)
    return message


def decode_up(line: bytes) -> Up:
    """A line that a driver sent."""
    message: Up = _UP.decode(line)
    return message


def tell(error: CynosureError) -> Told:
    """An error as it is sent."""
    return Told(
        type(error).__name__,
        error.message,
        error.fix,
        {name: str(value) for name, value in error.details.items()},
        {
            name: value
            for name, value in vars(error).items()
            if name not in _COMMON and isinstance(value, str | int)
        },
    )


def hear(told: Told) -> CynosureError:
    """The error again. One of a type that nobody here knows is a passing trouble."""
    for kind in _kinds(CynosureError):
        if kind.__name__ == told.type:
            # Constructors differ; what they keep does not.
            error = kind.__new__(kind)
            CynosureError.__init__(error, told.message, fix=told.fix, **told.details)
            for name, value in told.attributes.items():
                setattr(error, name, value)
            return error
    return Unavailable(told.message, fix=told.fix, **told.details)


def _kinds(kind: type[CynosureError]) -> Iterator[type[CynosureError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
