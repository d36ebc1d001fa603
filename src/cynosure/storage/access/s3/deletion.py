"""The body of a request that deletes many objects: which keys it names.

A maintainer must not break: the store's parser must find the same keys. So nothing is accepted beyond the
elements of the protocol, each once, in plain UTF-8: no document type, entity, comment, CDATA, prefix or
attribute, and no versions.
"""

from typing import Final
from xml.parsers import expat

from cynosure.common.errors import BadInput

MOST_KEYS: Final = 1_000
_MAX_BODY_CHARS: Final = 2_000_000
"""More than as many keys of the greatest length need."""
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_INSIDE: Final = {
    (): {"Delete"},
    ("Delete",): {"Object", "Quiet"},
    ("Delete", "Object"): {"Key"},
}
_WITH_TEXT: Final = {("Delete", "Object", "Key"), ("Delete", "Quiet")}


def read_deletion(body: str) -> list[str]:
    """The keys that a body names, in its order. `BadInput` for any other body."""
    if len(body) > _MAX_BODY_CHARS:
        raise _refuse("too long")
    reader = _Reader()
    try:
        reader.parser.Parse(body.encode(), True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise _refuse("not well-formed") from error
    if not reader.keys:
        raise _refuse("without a key")
    return reader.keys


class _Reader:
    def __init__(self) -> None:
        self.keys: list[str] = []
        self._path: tuple[str, ...] = ()
        self._text = ""
        self._has_key = False
        parser = self.parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        # Each of them could hide a key from one parser and show it to another.
        parser.StartDoctypeDeclHandler = _stop
        parser.CommentHandler = _stop
        parser.ProcessingInstructionHandler = _stop
        parser.StartCdataSectionHandler = _stop

    def _declare(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.upper() != "UTF-8":
            raise _refuse("not in UTF-8")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        allowed = {"xmlns": _NAMESPACE} if name == "Delete" else {}
        if name not in _INSIDE.get(self._path, ()) or attributes not in ({}, allowed):
            raise _refuse("with an element or attribute that is not served")
        if name == "Key":
            if self._has_key:
                raise _refuse("with two keys in one object")
            self._has_key = True
            if len(self.keys) == MOST_KEYS:
                raise _refuse("with too many keys")
        self._path = (*self._path, name)
        self._text = ""

    def _end(self, name: str) -> None:
        if name == "Key":
            self.keys.append(self._text)
        elif name == "Object":
            if not self._has_key:
                raise _refuse("with an object without a key")
            self._has_key = False
        elif name == "Quiet" and self._text not in ("true", "false"):
            raise _refuse("with a value that is not served")
        self._path = self._path[:-1]

    def _add_text(self, text: str) -> None:
        if self._path in _WITH_TEXT:
            self._text += text
        elif text.strip(" \t\r\n"):
            raise _refuse("with text between elements")


def _stop(*_: object) -> None:
    raise _refuse("with more than elements and text")


def _refuse(reason: str) -> BadInput:
    return BadInput(
        "The body of a deletion cannot be checked",
        field="body",
        fix=f"Send the body of DeleteObjects with 1 to {MOST_KEYS} keys, without versions.",
        reason=reason,
    )
