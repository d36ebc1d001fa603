"""What every command that speaks to a server has in common: its flags, and a server that answers.

A command takes a `Remote` first and is decorated with `connected`, which gives it the flags.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from cynosure.cli.flags import Flags

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
            async with open_transport(self, initialise=initialise) as server:
                return await work(server)

        return asyncio.run(connect_and_work())


def connected(command: Callable[Concatenate[Remote, P], None]) -> Callable[..., None]:
    """Give a command the flags of a connection; it gets them as its first argument."""
    signature = inspect.signature(command, eval_str=True)
    _, *own = (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values())
    flags = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(Remote)
    ]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        to = Remote(**{flag.name: given.pop(flag.name) for flag in flags})
        command(to, **given)  # type: ignore[call-arg]

    parameters = [*own, *flags]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call
