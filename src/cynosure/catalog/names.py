"""Names of namespaces, tables, views, generic tables and policies, and the index keys they have.

Keys of the index `names`: a letter for the kind and the number of parents, then the whole path. With the
number in it, one prefix holds exactly the children of one namespace, and nothing deeper.

    namespace a.b       n1 a b            table t in a.b      t2 a b t          view v in a      v1 a v
    generic g in a      g1 a g            policy p in a       p1 a p            facade f in a    f1 a f

Must not break: these keys are stored. Tables, views and generic tables share one space of names, so whoever
creates one asks for all three keys; policies have one of their own.
"""

import re
from typing import Final, NamedTuple

from cynosure.catalog.errors import InvalidName
from cynosure.persistence.index import decode_key, encode_key, prefix_of

Namespace = tuple[str, ...]
"""The levels of a namespace, outermost first. Empty: the catalog's root."""

SEPARATOR: Final = "\x1f"
MAX_LEVELS: Final = 32
MAX_CHARS: Final = 256
"""Of one level or name."""

_POLICY_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")

CLOSED: Final = encode_key("closed")
"""Present in `names` while the catalog is being dropped. Every write asks for it."""
GRANTS_CLOSED: Final = encode_key("closed")
"""Present in `ids` of the catalog's `grants` at that time: no id has such a key."""

BEING_MOVED: Final = encode_key("migration")
"""Present in `moving` since a federated catalog is on its way to us: what it has is nowhere else for long."""


ADOPTING: Final = "adopting"
"""The index of what is on its way here from another catalog; its entries have the keys of `names`."""


class Identifier(NamedTuple):
    """A table or view: its namespace and its name in it."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def namespace_text(namespace: Namespace) -> str:
    """As messages name it."""
    return ".".join(namespace)


def parse_namespace(text: str, *, field: str = "namespace") -> Namespace:
    """From a path segment or query parameter: levels joined by the unit separator."""
    return check_namespace(tuple(text.split(SEPARATOR)), field=field)


def check_namespace(levels: tuple[str, ...], *, field: str = "namespace") -> Namespace:
    """Refuse what cannot be a namespace."""
    if not levels:
        raise InvalidName("A namespace needs at least one level", field=field, fix="Name a namespace.")
    if len(levels) > MAX_LEVELS:
        raise InvalidName(
            "A namespace has too many levels",
            field=field,
            fix=f"Use at most {MAX_LEVELS} levels.",
            levels=len(levels),
        )
    for level in levels:
        check_name(level, field=field)
    return levels


def check_name(name: str, *, field: str) -> str:
    """Refuse what cannot be a name: empty, too long, or with control characters.

    Control characters hold the separator of levels, and end log lines and header values early.
    """
    if not name or len(name) > MAX_CHARS:
        raise InvalidName(
            "A name is empty or too long",
            field=field,
            fix=f"Use 1 to {MAX_CHARS} characters.",
            characters=len(name),
        )
    if not name.isprintable() and any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in name):
        raise InvalidName(
            "A name holds control characters",
            field=field,
            fix="Remove them; 0x1F separates the levels of a namespace and cannot be part of one.",
        )
    if name in (".", ".."):
        raise InvalidName("A name is a relative path", field=field, fix="Use another name.")
    return name


def namespace_key(namespace: Namespace) -> bytes:
    """Key of a namespace in `names`."""
    return encode_key(f"n{len(namespace) - 1}", *namespace)


def children_prefix(parent: Namespace) -> bytes:
    """What the keys of all namespaces right below `parent` begin with."""
    return prefix_of(f"n{len(parent)}", *parent)


def table_key(table: Identifier) -> bytes:
    """Key of a table in `names`."""
    return encode_key(f"t{len(table.namespace)}", *table.namespace, table.name)


def tables_prefix(namespace: Namespace) -> bytes:
    """What the keys of all tables of a namespace begin with."""
    return prefix_of(f"t{len(namespace)}", *namespace)


def view_key(view: Identifier) -> bytes:
    """Key of a view in `names`."""
    return encode_key(f"v{len(view.namespace)}", *view.namespace, view.name)


def views_prefix(namespace: Namespace) -> bytes:
    """What the keys of all views of a namespace begin with."""
    return prefix_of(f"v{len(namespace)}", *namespace)


def generic_key(table: Identifier) -> bytes:
    """Key of a generic table in `names`."""
    return encode_key(f"g{len(table.namespace)}", *table.namespace, table.name)


def generics_prefix(namespace: Namespace) -> bytes:
    """What the keys of all generic tables of a namespace begin with."""
    return prefix_of(f"g{len(namespace)}", *namespace)


def facade_key(table: Identifier) -> bytes:
    """Key of a table that was never seen in `names`: only grants find it (`federation.mirror.facades`)."""
    return encode_key(f"f{len(table.namespace)}", *table.namespace, table.name)


def facades_prefix(namespace: Namespace) -> bytes:
    """What the keys of all facades of a namespace begin with."""
    return prefix_of(f"f{len(namespace)}", *namespace)


def policy_key(policy: Identifier) -> bytes:
    """Key of a policy in `names`. Policies have names of their own: a table may be called the same."""
    return encode_key(f"p{len(policy.namespace)}", *policy.namespace, policy.name)


def policies_prefix(namespace: Namespace) -> bytes:
    """What the keys of all policies of a namespace begin with."""
    return prefix_of(f"p{len(namespace)}", *namespace)


def check_policy_name(name: str, *, field: str = "name") -> str:
    """Refuse what cannot be the name of a policy."""
    if not _POLICY_NAME.fullmatch(name):
        raise InvalidName(
            "This cannot be the name of a policy",
            field=field,
            fix="Use 1 to 128 letters, digits, hyphens and underscores.",
        )
    return name


def last_name(key: bytes) -> str:
    """The name of a listed entry, within the namespace it was listed in."""
    return decode_key(key)[-1]


def path_of(key: bytes) -> tuple[str, ...]:
    """The whole path of an entry."""
    return decode_key(key)[1:]


def is_namespace_key(key: bytes) -> bool:
    """Whether a key of `names` is a namespace's."""
    return key.startswith(b"n")
