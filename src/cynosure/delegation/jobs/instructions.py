"""Instructions of an order (`properties`), read and checked.

A maintainer must not break: an instruction that nobody knows is refused, never ignored.
"""

from collections.abc import Mapping
from typing import Final

from cynosure.common.errors import BadInput

_LONGEST: Final = 10_000
_MOST_DIGITS: Final = 19


class Instructions:
    """The instructions of one order. Words may be joined by hyphens or underscores."""

    def __init__(self, properties: Mapping[str, str], known: tuple[str, ...]) -> None:
        """`BadInput` for an instruction that is none of these."""
        self._values: dict[str, str] = {}
        for name, value in properties.items():
            plain = name.replace("-", "_").replace(".", "_")
            if plain not in known or plain in self._values or len(value) > _LONGEST:
                raise BadInput(
                    "An instruction is not known, or given twice, or too long",
                    field=_field(name[:100]),
                    fix=f"Use {', '.join(known)}, each once." if known else "Leave it out.",
                )
            self._values[plain] = value.strip()

    def find(self, name: str) -> str | None:
        """Its text; `None` when it is not given."""
        return self._values.get(name) or None

    def find_whole(self, name: str, *, least: int = 0, most: int = 2**62) -> int | None:
        """A whole number."""
        text = self.find(name)
        if text is None:
            return None
        # Policies hold numbers that JSON may write as 7.0.
        plain = text.removesuffix(".0")
        is_number = plain.isascii() and plain.isdigit() and len(plain) <= _MOST_DIGITS
        if not is_number or not least <= int(plain) <= most:
            raise BadInput(
                "An instruction is not a whole number in its range",
                field=_field(name),
                fix=f"Use a number from {least} to {most}.",
                value=text[:100],
            )
        return int(plain)

    def find_number(self, name: str, *, least: float = 0.0, most: float = 1e6) -> float | None:
        """A number."""
        text = self.find(name)
        if text is None:
            return None
        try:
            # Python reads more as numbers than anybody writes.
            value = float(text) if text.isascii() and "_" not in text else float("nan")
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise BadInput(
                "An instruction is not a number in its range",
                field=_field(name),
                fix=f"Use a number from {least} to {most}.",
                value=text[:100],
            )
        return value

    def find_flag(self, name: str, *, default: bool) -> bool:
        """`true` or `false`."""
        text = (self.find(name) or str(default)).lower()
        if text not in ("true", "false"):
            raise BadInput(
                "An instruction is neither true nor false",
                field=_field(name),
                fix="Use true or false.",
                value=text[:100],
            )
        return text == "true"

    def find_choice(self, name: str, choices: Mapping[str, str]) -> str | None:
        """One of several words, each standing for something."""
        text = self.find(name)
        if text is None:
            return None
        chosen = choices.get(text.lower())
        if chosen is None:
            raise BadInput(
                "An instruction is none of the words that are known",
                field=_field(name),
                fix=f"Use {', '.join(choices)}.",
                value=text[:100],
            )
        return chosen


def _field(name: str) -> str:
    return f"operation_parameters.properties.{name}"
