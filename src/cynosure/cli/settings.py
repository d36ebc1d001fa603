"""`cynosure settings`: what is set, and what can be."""

from typing import Any

import typer

from cynosure.cli import options
from cynosure.cli.output import print_json

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Show the settings in force, and all there are."
)


@app.command("show")
def show(config: options.Config = None, data: options.Data = None, as_json: options.Json = False) -> None:
    """Show the settings in force here, from file, environment and defaults. Secrets are masked."""
    import msgspec

    settings = options.make_source(config, {"server.data_dir": data}).load()
    plain = msgspec.to_builtins(settings, enc_hook=_plain, builtin_types=(_duration_type(),))
    if as_json:
        print_json(msgspec.to_builtins(plain, enc_hook=_plain))
        return
    for name, value in _flatten(plain, ""):
        print(f"{name} = {value}")


@app.command("reference")
def reference() -> None:
    """Print the reference of all settings, as Markdown."""
    from cynosure.server.settings_reference import render_page

    print(render_page(), end="")


def _duration_type() -> type:
    from datetime import timedelta

    return timedelta


def _plain(value: Any) -> Any:
    # A secret prints as its mask, a path as itself; nothing else gets here.
    return str(value)


def _flatten(value: Any, above: str) -> list[tuple[str, str]]:
    from datetime import timedelta

    from cynosure.common.quantities import format_duration

    if isinstance(value, dict):
        inner = [_flatten(part, f"{above}.{name}" if above else name) for name, part in value.items()]
        return [entry for entries in inner for entry in entries]
    if isinstance(value, timedelta):
        return [(above, format_duration(value))]
    return [] if value is None else [(above, str(value))]
