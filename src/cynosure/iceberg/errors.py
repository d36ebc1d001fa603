"""What this room adds to the error tree.

BadInput
├── InvalidMetadata       a metadata document that is not a valid table or view
│   └── DuplicateDialect  a view version with two queries for one dialect
├── InvalidManifest       a manifest or manifest list whose bytes are damaged or not Iceberg's
└── InvalidUpdate         an update that cannot be applied to this table
AlreadyExists
└── ColumnExists          the table has a column of this name
Conflict
├── RequirementFailed     the table is not what the client said it must be
└── StaleSnapshot         the snapshot was prepared on an older state; the client may prepare it again

A maintainer must not break: the text of `RequirementFailed` starts as Iceberg's reference implementation
writes it, because clients and their tests look for it.
"""

from typing import Any

from cynosure.common.errors import AlreadyExists, BadInput, Conflict


class InvalidMetadata(BadInput):
    """A metadata document that is not valid Iceberg. `field` is its path in the document."""


class DuplicateDialect(InvalidMetadata):
    """A view version with two queries for one dialect; told in the words that clients expect."""

    def __init__(self, dialect: str, *, field: str) -> None:
        super().__init__(
            "Invalid view version: Cannot add multiple queries for dialect",
            field=field,
            fix="Send one query for each dialect.",
            dialect=dialect,
        )

    def __str__(self) -> str:
        return f"{self.message} {self.details['dialect']}"


class InvalidManifest(BadInput):
    """A manifest or manifest list that cannot be read. `field` is its path, `position` an offset in it."""

    def __init__(self, message: str, *, path: str, position: int | None = None, **details: Any) -> None:
        super().__init__(
            message,
            field=path,
            fix="Restore the file from a backup, or roll the table back to a snapshot without it.",
            position=position,
            **details,
        )


class InvalidUpdate(BadInput):
    """An update that cannot be applied. `field` is its path in the request."""


class ColumnExists(AlreadyExists):
    """The table has a column of this name, by now. `field` is where the request names it."""

    def __init__(self, column: str, *, field: str) -> None:
        super().__init__(
            "Column already exists",
            fix="Look at the table, and choose another name if this is not the column you want.",
            field=field,
            column=column,
        )


class RequirementFailed(Conflict):
    """The table is not in the state that the client requires."""

    def __init__(self, claim: str, **details: Any) -> None:
        # The varying part is in the message: clients show and match it as one sentence.
        super().__init__(f"Requirement failed: {claim}", **details)


class StaleSnapshot(Conflict):
    """A snapshot whose numbers another commit has overtaken.

    Not the client's mistake: it read the table before that commit, and a retry on the new state succeeds.
    """
