"""Loaded by a gateway's Python when it starts: writes down what it draws by chance and keeps for itself.

Tokens of fragments and salts of statements are told to nobody, so a search for them has to see them made.
"""

import os
import secrets
import sys
from collections.abc import Callable
from typing import Any

_MAKERS = {"cynosure.query.broker.tokens": "token", "cynosure.query.coordinator.answering": "salt"}


def _spy(draw: Callable[..., Any], file: str) -> Callable[..., Any]:
    def drawn(*arguments: Any) -> Any:
        value = draw(*arguments)
        kind = _MAKERS.get(sys._getframe(1).f_globals.get("__name__", ""))
        if kind is not None:
            text = value if isinstance(value, str) else value.hex()
            with open(file, "a", encoding="ascii") as kept:
                kept.write(f"{kind} {text}\n")
        return value

    return drawn


if "SPIED_FILE" in os.environ:
    for _name in ("token_bytes", "token_urlsafe"):
        setattr(secrets, _name, _spy(getattr(secrets, _name), os.environ["SPIED_FILE"]))
