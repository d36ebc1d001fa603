"""What Java raised: the classes in the chain of causes, and what was said last."""

import re
from typing import Any, Final

_CLASS: Final = re.compile(r"\b(?:[a-z][\w]*\.){2,}[A-Z]\w*")
_MOST: Final = 20


def read_chain(raised: BaseException) -> tuple[list[str], str]:
    """Class names from the outermost to the root, and what is said. The text may hold anything."""
    java = getattr(raised, "java_exception", None) or getattr(raised, "_origin", None)
    names: list[str] = []
    texts: list[str] = []
    if java is None:
        text = f"{type(raised).__name__}: {raised}"
        return [type(raised).__name__, *_CLASS.findall(text)[:_MOST]], text
    names.append(type(raised).__name__)
    while java is not None and len(names) < _MOST:
        names.append(_call(java.getClass().getName))
        texts.append(_call(java.getMessage) or "")
        java = java.getCause()
    # A task's failure arrives as text: its classes are in there.
    names += _CLASS.findall(" ".join(texts))[:_MOST]
    return names, next((text for text in reversed(texts) if text), "")


def _call(function: Any) -> str:
    return str(function() or "")
