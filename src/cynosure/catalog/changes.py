"""Changes of several indexes, put together into one commit.

Must not break: of two changes of one key the later counts, as if one commit had followed the other.
"""

Changes = dict[str, dict[bytes, bytes | None]]
"""Per index: new value of a key, or `None` to remove it."""


def merge(changes: Changes, more: Changes) -> None:
    """Put further changes on top."""
    for index, entries in more.items():
        if entries:
            changes.setdefault(index, {}).update(entries)
