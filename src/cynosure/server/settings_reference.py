"""Generates docs/reference/settings.md: `python -m cynosure.server.settings_reference [--check]`.

The docstring under a field is its documentation; a field without one fails the generator.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cynosure.common.quantities import format_bytes, format_duration
from cynosure.common.settings.sources import PREFIX
from cynosure.common.settings.values import ByteSize, describe, dict_value_type, unwrap_optional
from cynosure.server.reference_page import cell, publish
from cynosure.server.settings import ALIASES, Settings

PAGE = Path("docs/reference/settings.md")
_NAME = "NAME"
"""Stands for a name that whoever writes the settings chooses."""

_HEAD = """\
# Settings

Generated from the settings structs; edit those, then run `python -m cynosure.server.settings_reference`.

How settings are given and which source wins: [configuration](../operations/configuration.md).
"""

_ALIASES_HEAD = """
## Names from Apache Polaris

These names are understood in the file (`[polaris.idempotency]`, or quoted and dotted) and in the environment
(`CYNOSURE_POLARIS__IDEMPOTENCY__LIFETIME`). A name without a counterpart is refused, not ignored.

| Name | Setting |
| --- | --- |
"""


def render_page() -> str:
    """The whole page."""
    sections = "".join(_render(struct, path) for struct, path in _structs(Settings, ()))
    rows = [
        f"| `{name}` | {f'`{ours}`' if ours else 'refused: this version does not have it'} |\n"
        for name, ours in ALIASES.items()
    ]
    return _HEAD + sections + _ALIASES_HEAD + "".join(rows)


def _structs(struct: type[Struct], above: tuple[str, ...]) -> Iterator[tuple[type[Struct], tuple[str, ...]]]:
    for field in msgspec.structs.fields(struct):
        path = (*above, field.name)
        kind: Any = field.type
        if (inner := dict_value_type(kind)) is not None:
            kind, path = inner, (*path, _NAME)
        if _is_struct(kind):
            yield kind, path
            yield from _structs(kind, path)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _render(struct: type[Struct], path: tuple[str, ...]) -> str:
    docs = field_docs(struct)
    rows = []
    for field in msgspec.structs.fields(struct):
        inner = dict_value_type(field.type)
        if _is_struct(field.type if inner is None else inner):
            continue
        keys = (*path, field.name)
        kind = describe(unwrap_optional(field.type if inner is None else inner))
        name, variable = ".".join(keys), PREFIX + "__".join(keys).upper()
        if inner is not None:
            name, variable = f"{name}.{_NAME}", f"{variable}__{_NAME}"
        text = f"{docs[field.name]} *Write {kind}.*"
        rows.append(f"| `{name}` | {cell(_default(field))} | {cell(text)} | `{variable}` |\n")
    return (
        f"\n{'#' * (len(path) + 1)} {'.'.join(path)}\n\n{inspect.getdoc(struct)}\n\n"
        "| Setting | Default | Meaning | Environment |\n| --- | --- | --- | --- |\n" + "".join(rows)
    )


def _default(field: msgspec.structs.FieldInfo) -> str:
    default: Any = field.default
    if field.required:
        return "*must be given*"
    if default is msgspec.NODEFAULT or default in (None, ""):
        return "none"
    if isinstance(default, tuple):
        return f"`{msgspec.json.encode(default).decode()}`" if default else "none"
    if isinstance(default, timedelta):
        return f"`{format_duration(default)}`"
    if field.type == ByteSize:
        return f"`{format_bytes(default)}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def field_docs(struct: type[Struct]) -> dict[str, str]:
    """The docstring under each field, which Python itself does not keep."""
    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    docs: dict[str, str] = {}
    statements = getattr(body, "body", [])
    for statement, following in pairwise(statements):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = text
    return docs


if __name__ == "__main__":
    sys.exit(publish(PAGE, render_page(), sys.argv[1:]))
