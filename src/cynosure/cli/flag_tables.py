"""Flags that stand in tables: each with the field of the management API that it says.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from cynosure.cli.flags import read_secret


class Flag(NamedTuple):
    """One flag."""

    name: str
    """With underscores."""
    field: str
    metavar: str | None
    """`None`: a switch."""
    help: str
    read: Callable[[Any], Any] = lambda value: value
    """What is sent for what was written."""
    is_repeated: bool = False
    opposite: str = ""
    """Of a switch: the flag that says no."""


class SecretFlag(NamedTuple):
    """A secret: its flags say where it is (`…_file`, `…_env`)."""

    name: str
    field: str
    what: str
    """As the help of the flags calls it."""
    prompt: str
    is_one_line: bool = True
    file_help: str = ""
    """Left out: that it is a file with this."""

    @property
    def file(self) -> Flag:
        """Says which file it is in."""
        help = self.file_help or f"File with {self.what}; - reads stdin."
        return Flag(f"{self.name}_file", self.field, "FILE", help)

    @property
    def variable(self) -> Flag:
        """Says which variable it is in."""
        return Flag(f"{self.name}_env", self.field, "VARIABLE", f"Variable that holds {self.what}.")


Row = Flag | SecretFlag


def list_flags(rows: Iterable[Row]) -> Iterator[Flag]:
    """What is written on the command line, in this order."""
    for row in rows:
        yield from (row.file, row.variable) if isinstance(row, SecretFlag) else (row,)


def make_parameter(flag: Flag, panel: str | None) -> inspect.Parameter:
    """A flag as a parameter of a command; `panel` is the part of its help."""
    names = write_flag(flag.name)
    kind: Any = list[str] | None if flag.is_repeated else str | None
    if flag.opposite:
        names, kind = f"{names}/{write_flag(flag.opposite)}", bool | None
    option = typer.Option(
        names, metavar=flag.metavar, help=flag.help, show_default=False, rich_help_panel=panel
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(flag.name, keyword, default=None, annotation=Annotated[kind, option])


def take_given(rows: Iterable[Row], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, by the names of the flags; those that are `None` were left out."""
    names = {flag.name for flag in list_flags(rows)}
    if unknown := given.keys() - names:
        raise TypeError(f"no such flags: {sorted(unknown)}")
    return {name: value for name, value in given.items() if value is not None}


def read_fields(rows: Iterable[Row], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said with these flags, by field. Secrets are read here."""
    found = {row.field: _read(row, given) for row in rows}
    return {field: value for field, value in found.items() if value is not None}


def _read(row: Row, given: Mapping[str, Any]) -> Any:
    if isinstance(row, SecretFlag):
        file, variable = given.get(row.file.name), given.get(row.variable.name)
        flag = write_flag(row.name)
        return read_secret(file, variable, flag=flag, prompt=row.prompt, is_one_line=row.is_one_line)
    value = given.get(row.name)
    return None if value is None else row.read(value)


def find_flag(rows: Iterable[Row], field: str) -> str | None:
    """The flag that says a field, as it is written."""
    return next((write_flag(flag.name) for flag in list_flags(rows) if flag.field == field), None)


def write_flag(name: str) -> str:
    """A flag as it is written on the command line."""
    return f"--{name.replace('_', '-')}"
