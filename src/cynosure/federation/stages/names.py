"""Which names a kind of remote can have at all.

Must not break: what cannot be there is answered without asking, as if the remote had said that it is not
there; what cannot be made is refused without asking.
"""

from cynosure.catalog.errors import InvalidName
from cynosure.catalog.names import Identifier, Namespace
from cynosure.federation.remote import Abilities


def can_have_namespace(abilities: Abilities, namespace: Namespace) -> bool:
    """Whether there can be a namespace of this name."""
    if len(namespace) > 1 and not abilities.has_nested_namespaces:
        return False
    return abilities.names == "any" or all(_is_kept_so(level) for level in namespace)


def can_have_table(abilities: Abilities, table: Identifier) -> bool:
    """Whether there can be a table of this name."""
    if not can_have_namespace(abilities, table.namespace):
        return False
    return abilities.names == "any" or _is_kept_so(table.name)


def can_have_view(abilities: Abilities, view: Identifier) -> bool:
    """Whether there can be a view of this name."""
    return abilities.has_views and can_have_table(abilities, view)


def require_possible(abilities: Abilities, path: tuple[str, ...], *, field: str, levels: int) -> None:
    """Refuse to make something under a name that the remote cannot have; `levels` of it are a namespace."""
    if levels > 1 and not abilities.has_nested_namespaces:
        raise InvalidName(
            "The remote catalog has no namespaces inside others", field=field, fix="Name one level."
        )
    if abilities.names == "lower" and not all(_is_kept_so(part) for part in path):
        raise InvalidName(
            "The remote catalog keeps names in lower case only, without spaces around them",
            field=field,
            fix="Use lower case.",
        )


def _is_kept_so(name: str) -> bool:
    # A metastore takes names with spaces around them for those without, too.
    return name == name.strip().lower()
