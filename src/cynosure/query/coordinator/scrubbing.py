"""The last line of defence for what errors say: no path, credential, token or constant of a policy.

Errors of engines are constant texts already (`query.errors`). What comes here all the same, from a library
deep inside, is cut; an error that is none of ours becomes one without any of its words.

A maintainer must not break: whatever is not known to be harmless is replaced, never passed on.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cynosure.common.errors import CynosureError
from cynosure.query.engine import Relation
from cynosure.query.errors import QueryFailed
from cynosure.query.scan_task import ScanTask

_CUT: Final = "…"
_PATTERNS: Final = re.compile(
    r"""
    \b[A-Za-z][A-Za-z0-9+.-]{1,10}:/[^\s'",)]*           # addresses: s3://…, file:/…, https://…
    | (?<![\w.])/(?:[\w.=%-]+/)+[\w.=%-]*               # absolute paths
    | \beyJ[\w-]+\.[\w-]+\.[\w-]*                      # tokens
    | \b(?:AKIA|ASIA)[A-Z0-9]{8,}                       # names of keys
    | \b(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[A-Za-z0-9+/_-]{32,}={0,2}   # what looks like a secret
    """,
    re.VERBOSE,
)
_LONG: Final = 2_000
"""Characters of an error, or of one line of a plan."""
_MOST_LINES: Final = 1_000


class Scrubber:
    """Knows what of one statement must not be told."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._words: set[str] = set()
        self._constants: set[str] = set()

    def learn(self, relations: Iterable[Relation]) -> None:
        """Take the secrets of what the statement reads."""
        for relation in relations:
            for task in relation.fragments:
                if isinstance(task, ScanTask):
                    self._words.update(
                        value for value in task.credentials.properties.values() if len(value) > 7
                    )
                    self._words.update(each.path for each in task.files)
                    self._words.update(each.path for each in task.deletes)
            if relation.table is not None:
                # What the user wrote is no secret to the user.
                self._constants.update(
                    word for word in _constants(relation.table.row_filter) if word not in self._sql
                )

    def clean(self, text: str) -> str:
        """A text without anything of that."""
        return _cut(_PATTERNS.sub(_CUT, text[:_LONG]), (*self._words, *self._constants))

    def clean_plan(self, text: str) -> str:
        """An engine's plan without paths and credentials.

        Constants of policies are below what engines plan (`spark.plan_check`). Those in a plan are the user's
        own, some put together by the engine: to cut one out would say that a policy has it, too.
        """
        lines = (_PATTERNS.sub(_CUT, each[:_LONG]) for each in text.splitlines()[:_MOST_LINES])
        return _cut("\n".join(lines), self._words)

    def scrub(self, error: BaseException) -> CynosureError:
        """What may be told about a failure."""
        if not isinstance(error, CynosureError):
            return QueryFailed(
                "The statement failed for a reason that is in the gateway's log only",
                condition="INTERNAL_ERROR",
                fix="Give the statement's id to whoever runs the gateway.",
            )
        details = {name: self._clean_value(value) for name, value in error.details.items()}
        message, fix = self.clean(error.message), self.clean(error.fix)
        if (message, fix, details) == (error.message, error.fix, error.details):
            return error
        copy = CynosureError.__new__(type(error))
        CynosureError.__init__(copy, message, fix=fix, **details)
        for name, value in vars(error).items():
            if name not in ("message", "fix", "details"):
                setattr(copy, name, self._clean_value(value))
        return copy

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        return value if isinstance(value, bool | int | float | None) else self.clean(str(value))


def _cut(text: str, words: Iterable[str]) -> str:
    for word in words:
        if word in text:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", _CUT, text)
    return text


def _constants(expression: bytes) -> set[str]:
    """Texts and numbers of a filter that are long enough to be recognised."""
    found: set[str] = set()
    pending: list[Any] = [msgspec.json.decode(expression)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for name, value in node.items():
                if name in ("value", "values"):
                    many = value if isinstance(value, list) else [value]
                    found.update(str(each) for each in many if isinstance(each, str | int | float))
                    pending += [each for each in many if isinstance(each, dict)]
                elif isinstance(value, dict):
                    pending.append(value)
        elif isinstance(node, list):
            pending += node
    return {each for each in found if len(each) > 1}
