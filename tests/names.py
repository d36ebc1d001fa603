"""Names that nothing else has: a second try of a test finds what the first left, in the same catalog."""

import uuid


def unique(word: str = "ns") -> str:
    """A new name that begins with this word; fit for SQL, paths and Iceberg."""
    return f"{word}_{uuid.uuid4().hex[:10]}"
