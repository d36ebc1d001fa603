"""What every command that speaks to a server has in common: its flags, and a server that answers.

A command takes a `Remote` first and is decorated with `connected`, which gives it the flags; one that makes a
single change, with `changing`, which adds those of repeating it.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from cynosure.cli.flags import DEFAULT_TIMEOUT, Flags, IdempotencyKey, Timeout
from cynosure.common.errors import BadInput
from cynosure.common.quantities import parse_duration

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Remote(Flags):
    """The server that a call means."""

    def run(self, work: "Callable[[Server], Awaitable[T]]", *, initialise: bool = False) -> T:
        """Do the work with the server these flags mean.

        `initialise`: where there is neither a server nor a store yet, make the store.
        """
        import asyncio

        from cynosure.cli.transport import open_transport

        async def connect_and_work() -> T:
            async with open_transport(
                self, initialise=initialise, key=self.get_key(), patience_s=self.get_patience_s()
            ) as server:
                return await work(server)

        return asyncio.run(connect_and_work())

    def get_key(self) -> str | None:
        """The Idempotency-Key that the caller gives to its change."""
        return None

    def get_patience_s(self) -> float:
        """How long a change is repeated."""
        return parse_duration(DEFAULT_TIMEOUT).total_seconds()


@dataclass(frozen=True, slots=True)
class Changing(Remote):
    """The server that a call means, and how its change is repeated."""

    idempotency_key: IdempotencyKey = None
    timeout: Timeout = DEFAULT_TIMEOUT

    def __post_init__(self) -> None:
        """Refuse wrong flags before a command does anything."""
        self.get_key()
        self.get_patience_s()

    def get_key(self) -> str | None:  # noqa: D102
        from cynosure.client.idempotency import check_key

        if self.idempotency_key is None:
            return None
        return check_key(self.idempotency_key, field="--idempotency-key")

    def get_patience_s(self) -> float:  # noqa: D102
        try:
            found_s = parse_duration(self.timeout).total_seconds()
        except ValueError:
            found_s = 0.0
        if found_s <= 0.0:
            raise BadInput("Not a duration", field="--timeout", fix="Write 30s, 2m or PT2M.")
        return found_s


def connected(command: Callable[Concatenate[Remote, P], None]) -> Callable[..., None]:
    """Give a command the flags of a connection; it gets them as its first argument."""
    return _with_flags(command, Remote)


def changing(command: Callable[Concatenate[Remote, P], None]) -> Callable[..., None]:
    """As `connected`, for a command that makes one change, under one Idempotency-Key."""
    return _with_flags(command, Changing)


def _with_flags(command: Callable[Concatenate[Remote, P], None], kind: type[Remote]) -> Callable[..., None]:
    signature = inspect.signature(command, eval_str=True)
    _, *own = (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values())
    flags = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(kind)
    ]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        to = kind(**{flag.name: given.pop(flag.name) for flag in flags})
        command(to, **given)  # type: ignore[call-arg]

    parameters = [*own, *flags]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call
