"""Names as users write them: levels with dots, properties as KEY=VALUE, places; times, sizes for people."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cynosure.common.errors import BadInput

Separator = Annotated[
    str, typer.Option("--separator", help="What separates the levels of names, if one of them holds a dot.")
]
OfCatalog = Annotated[str, typer.Option("--catalog", metavar="NAME", help="The catalog.")]
OfNamespace = Annotated[
    str, typer.Option("--namespace", metavar="NAMESPACE", help="With dots between levels.")
]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be repeated.")
]
SetProperties = Annotated[
    list[str] | None,
    typer.Option("--set-property", "--property", metavar="KEY=VALUE", help="May be repeated."),
]
RemoveProperties = Annotated[
    list[str] | None, typer.Option("--remove-property", metavar="KEY", help="May be repeated.")
]

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def split_name(text: str, separator: str = ".", *, field: str = "namespace") -> tuple[str, ...]:
    """The levels of a name."""
    if not separator:
        raise BadInput("The separator is empty", field="--separator", fix="Give at least one character.")
    levels = tuple(text.split(separator))
    if not all(levels):
        raise BadInput(
            "A level of the name is empty", field=field, fix=f"Write LEVEL{separator}LEVEL.", name=text
        )
    return levels


def parse_properties(given: Iterable[str] | None, *, flag: str = "--property") -> dict[str, str]:
    """Properties from KEY=VALUE."""
    pairs: dict[str, str] = {}
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise BadInput(
                "A key and a value are needed", field=flag, fix=f"Write {flag} KEY=VALUE.", given=each
            )
        pairs[key] = value
    return pairs


def change_properties(
    current: Mapping[str, str], given: Iterable[str] | None, removed: Iterable[str] | None
) -> dict[str, str]:
    """Properties with these set and those removed."""
    gone = set(removed or ())
    return {name: value for name, value in {**current, **parse_properties(given)}.items() if name not in gone}


def make_absolute(location: str) -> str:
    """A path as this user means it: the server has another working directory."""
    scheme, colon, _ = location.partition(":")
    if colon and scheme.isalnum():
        return location
    return f"file://{Path(location).expanduser().absolute()}"


def format_properties(properties: Mapping[str, str]) -> str:
    """Properties in one cell of a table."""
    return ", ".join(f"{name}={value}" for name, value in sorted(properties.items()))


def format_time(time_ms: int) -> str:
    """A time for people; nothing for one that is not known."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds") if time_ms else ""


def format_size(size_bytes: int) -> str:
    """So many bytes for people."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    # 2**10 is the first unit; there is none above the last.
    power = min((size_bytes.bit_length() - 1) // 10, len(_UNITS))
    return f"{size_bytes / 1024**power:.1f} {_UNITS[power - 1]}"
