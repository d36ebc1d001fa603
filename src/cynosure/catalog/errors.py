"""What catalog operations refuse, extending the one tree.

A maintainer must not break: the text. Iceberg clients and their tests read the beginning of these messages
("Table does not exist: a.b"), so here the name belongs to the message and is not a detail behind it.
"""

from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    Named,
    NotFound,
    Unavailable,
)


class NoSuchCatalog(Named, NotFound):
    """No catalog of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Catalog does not exist",
            fix="Create it with 'cynosure catalogs create', or check the name.",
            name=name,
        )


class NoSuchNamespace(Named, NotFound):
    """No namespace of this name in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace does not exist", name=name)


class NoSuchTable(Named, NotFound):
    """No table of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("Table does not exist", name=name)


class NoSuchView(Named, NotFound):
    """No view of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("View does not exist", name=name)


class NoSuchPolicy(Named, NotFound):
    """No policy of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("Policy does not exist", name=name)


class NoSuchCatalogRole(Named, NotFound):
    """No catalog role of this name in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog role does not exist", name=name)


class NoSuchDropped(Named, NotFound):
    """Nothing that can be restored has this id."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Nothing dropped has this id",
            fix="List what can be restored; it may have been restored, or its window has passed.",
            name=name,
        )


class CatalogExists(Named, AlreadyExists):
    """The catalog's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog already exists", fix="Choose another name.", name=name)


class CatalogRoleExists(Named, AlreadyExists):
    """The catalog role's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog role already exists", fix="Choose another name.", name=name)


class NamespaceExists(Named, AlreadyExists):
    """The namespace is there already."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace already exists", name=name)


class TableExists(Named, AlreadyExists):
    """A table has this name; tables and views share one space of names."""

    def __init__(self, name: str, *, is_wanted_by_view: bool = False) -> None:
        text = "Table with same name already exists" if is_wanted_by_view else "Table already exists"
        super().__init__(text, name=name)


class ViewExists(Named, AlreadyExists):
    """A view has this name; tables and views share one space of names."""

    def __init__(self, name: str, *, is_wanted_by_table: bool = False) -> None:
        text = "View with same name already exists" if is_wanted_by_table else "View already exists"
        super().__init__(text, name=name)


class RenameTargetTaken(AlreadyExists):
    """A table or view has the name that another is to get."""

    def __init__(self, source: str, destination: str, *, is_view: bool) -> None:
        super().__init__(
            "The new name is taken", source=source, destination=destination, taken_by_view=is_view
        )

    def __str__(self) -> str:
        kind = "View" if self.details["taken_by_view"] else "Table"
        return (
            f"Cannot rename {self.details['source']} to {self.details['destination']}. {kind} already exists"
        )


class NotEmpty(CynosureError):
    """What still holds something is not dropped."""


class NamespaceNotEmpty(NotEmpty):
    """The namespace holds tables, views or namespaces."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace is not empty", fix="Drop or move what is in it first.", name=name)

    def __str__(self) -> str:
        return f"Namespace {self.details['name']} is not empty. {self.fix}"


class CatalogNotEmpty(NotEmpty):
    """The catalog holds namespaces."""


class CatalogClosed(Conflict):
    """The catalog is being dropped; nothing is written to it any more."""


class LocationRefused(CynosureError):
    """The location is outside what the catalog may use, or belongs to another table."""


class CatalogLocationRefused(LocationRefused):
    """A catalog cannot have this location: it is another's, or not inside what it allows."""


class Unprocessable(CynosureError):
    """Each part of the request is well-formed; together they contradict each other."""


class InvalidName(BadInput):
    """A name that no catalog object can have."""


class NotImported(Named, Unavailable):
    """Only the metadata file of a table is known; it has to be imported before it can be changed."""

    def __init__(self, name: str) -> None:
        super().__init__("Table is not imported yet", fix="Load it, and try again.", name=name)
