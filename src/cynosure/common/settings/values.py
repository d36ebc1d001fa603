"""What a settings field may hold, and how written values become typed ones.

Supported: `str`, `bool`, `int`, `float`, `Literal[...]`, `Path`, `Secret`, `Duration`, `ByteSize`, each
also `| None` (which means "left out"), lists of text (`Texts`), and `dict[str, X]` of these or of structs. A
new kind of value is one more entry in `_PARSERS` and one in `describe`.
"""

import types
import typing
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from cynosure.common.quantities import parse_bytes, parse_duration
from cynosure.common.secrets import Secret

Duration = Annotated[timedelta, Meta(extra={"kind": "duration"})]
"""A duration above zero: `30s`, `3h`, `2d`, `1h30m` or ISO-8601 (`PT30M`)."""
DurationOrZero = Annotated[timedelta, Meta(extra={"kind": "duration-or-zero"})]
"""A duration where zero has a meaning of its own."""
ByteSize = Annotated[int, Meta(ge=0, extra={"kind": "bytes"})]
"""A size in bytes: `64 MiB`, `10 GB` or a plain number."""
Texts = tuple[str, ...]
"""A list of texts; where there is only text, with commas between them."""


class Unusable(ValueError):
    """A written value does not fit its field. The text is the fix, an imperative sentence."""


def unwrap_optional(annotation: Any) -> Any:
    """`X` of `X | None`; anything else unchanged."""
    if get_origin(annotation) in (types.UnionType, typing.Union):
        present = [arm for arm in get_args(annotation) if arm is not types.NoneType]
        if len(present) == 1:
            return present[0]
    return annotation


def dict_value_type(annotation: Any) -> Any | None:
    """`X` of `dict[str, X]`, or `None` for anything else."""
    return get_args(annotation)[1] if get_origin(annotation) is dict else None


def parse_value(annotation: Any, raw: Any, *, is_text: bool) -> Any:
    """The typed value of a field. `is_text`: numbers and booleans also come as text (environment, flags)."""
    parsed = _PARSERS[_kind(annotation)](raw, is_text)
    try:
        return parsed if isinstance(parsed, Path | Secret) else msgspec.convert(parsed, annotation)
    except msgspec.ValidationError as error:
        raise Unusable(f"Write {describe(annotation)}.") from error


def describe(annotation: Any) -> str:
    """What to write, for errors and for the reference page."""
    text = {
        "duration": "a duration above zero, such as 30s, 3h, 2d or PT30M",
        "duration-or-zero": "a duration, such as 0s, 30s, 3h or PT30M",
        "bytes": "a size, such as 64 MiB or 1048576",
        "str": "text",
        "bool": "true or false",
        "int": "a whole number",
        "float": "a number",
        "path": "a path",
        "secret": 'a secret, as text or as { file = "path" }',
        "texts": 'a list of texts, such as ["a", "b"]',
        "literal": "one of " + ", ".join(map(str, get_args(annotation))),
    }[_kind(annotation)]
    bounds = [
        f"{word} {limit}"
        for meta in getattr(annotation, "__metadata__", ())
        for word, limit in (
            ("at least", meta.ge),
            ("at most", meta.le),
            ("above", meta.gt),
            ("below", meta.lt),
        )
        if limit is not None and _kind(annotation) != "bytes"
    ]
    return f"{text}, {' and '.join(bounds)}" if bounds else text


def shape_of(raw: Any) -> str:
    """What a value looks like, without showing it: it may be a secret in the wrong place."""
    match raw:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number with a fraction"
        case str():
            return f"text of {len(raw)} characters"
        case dict():
            return "a table"
        case list():
            return f"a list of {len(raw)}"
        case _:
            return f"a {type(raw).__name__}"


def _kind(annotation: Any) -> str:
    for meta in getattr(annotation, "__metadata__", ()):
        if meta.extra and "kind" in meta.extra:
            return str(meta.extra["kind"])
    plain = annotation.__origin__ if get_origin(annotation) is Annotated else annotation
    if get_origin(plain) is Literal:
        return "literal"
    return _KINDS[plain]


def _text(raw: Any, is_text: bool) -> str:
    if not isinstance(raw, str):
        raise Unusable("Write it in quotes.")
    return raw


def _boolean(raw: Any, is_text: bool) -> bool:
    if is_text and isinstance(raw, str) and raw.lower() in ("true", "false", "1", "0"):
        return raw.lower() in ("true", "1")
    if not isinstance(raw, bool):
        raise Unusable("Write true or false, without quotes.")
    return raw


def _number(convert: type[int] | type[float]) -> Callable[[Any, bool], float]:
    def parse(raw: Any, is_text: bool) -> float:
        try:
            if is_text and isinstance(raw, str):
                return convert(raw)
        except ValueError as error:
            raise Unusable("Write digits only.") from error
        if isinstance(raw, bool) or not isinstance(raw, (int, float) if convert is float else int):
            raise Unusable("Write a number, without quotes.")
        return raw

    return parse


def _duration(raw: Any, is_text: bool) -> timedelta:
    if isinstance(raw, timedelta):
        return raw
    try:
        return parse_duration(_text(raw, is_text))
    except ValueError as error:
        raise Unusable("Write a duration in quotes with its unit, such as 30s, 3h, 2d or PT30M.") from error


def _positive_duration(raw: Any, is_text: bool) -> timedelta:
    duration = _duration(raw, is_text)
    if not duration:
        raise Unusable("Write a duration above zero.")
    return duration


def _bytes(raw: Any, is_text: bool) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    try:
        return parse_bytes(_text(raw, is_text))
    except ValueError as error:
        raise Unusable(
            "Write a size with its unit, such as 64 MiB or 10 GB, or a plain number of bytes."
        ) from error


def _texts(raw: Any, is_text: bool) -> tuple[str, ...]:
    if is_text and isinstance(raw, str):
        return tuple(each for part in raw.split(",") if (each := part.strip()))
    if not isinstance(raw, list | tuple):
        raise Unusable("Write a list in brackets, each text in quotes.")
    return tuple(_text(each, is_text) for each in raw)


def _path(raw: Any, is_text: bool) -> Path:
    if isinstance(raw, Path):
        return raw
    if not _text(raw, is_text):
        raise Unusable("Write a path, or leave the setting out.")
    return Path(raw).expanduser()


def _secret(raw: Any, is_text: bool) -> Secret:
    if isinstance(raw, Secret):
        return raw
    if not _text(raw, is_text):
        raise Unusable("Write the secret, or leave the setting out.")
    return Secret(raw)


_PARSERS: dict[str, Callable[[Any, bool], Any]] = {
    "str": _text,
    "bool": _boolean,
    "int": _number(int),
    "float": _number(float),
    "literal": _text,
    "duration": _positive_duration,
    "duration-or-zero": _duration,
    "bytes": _bytes,
    "path": _path,
    "secret": _secret,
    "texts": _texts,
}
_KINDS: dict[Any, str] = {
    str: "str",
    bool: "bool",
    int: "int",
    float: "float",
    Path: "path",
    Secret: "secret",
    Texts: "texts",
}
