"""How large the pieces of an index may grow.

Nothing stored depends on these numbers: trees written under other limits stay readable and take the
new shape where they change. The defaults keep one million keys at two node rows below the embedded
root even at the 70 % fill that random insertion leaves behind; docs/adr/0002-index-tree.md has the
arithmetic.
"""

from msgspec import Struct

from cynosure.common.errors import Misconfigured

MAX_KEY_BYTES = 8 * 1024
MAX_VALUE_BYTES = 64 * 1024
_MIN_ENTRIES = 4
_MAX_ENTRIES = 16_384


class IndexLimits(Struct, frozen=True, kw_only=True):
    """Sizes are before compression and after the common prefix of a node's keys is taken off."""

    buffer_bytes: int = 4 * 1024
    """Recent changes kept in the commit object. Above this the least recently changed are spilled."""
    spill_leaves: int = 1
    """Leaves that one commit may spill to, so that no commit is much larger than the others. A buffer
    beyond twice its limit (a bulk change) is spilled down to its limit all the same."""
    root_bytes: int = 3 * 1024
    """The root node, embedded in the commit object. Above this it moves into rows and a new root grows."""
    leaf_entries: int = 128
    leaf_bytes: int = 8 * 1024
    inner_entries: int = 256
    inner_bytes: int = 16 * 1024

    def __post_init__(self) -> None:
        for name in ("leaf_entries", "inner_entries"):
            if not _MIN_ENTRIES <= getattr(self, name) <= _MAX_ENTRIES:
                raise Misconfigured(
                    "An index node limit is out of range",
                    fix="Choose between 4 and 16384 entries.",
                    setting=name,
                    value=getattr(self, name),
                )
        for name in ("buffer_bytes", "root_bytes", "leaf_bytes", "inner_bytes", "spill_leaves"):
            if getattr(self, name) < 1:
                raise Misconfigured("An index limit must be positive", fix="Choose 1 or more.", setting=name)
