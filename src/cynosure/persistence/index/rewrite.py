"""Copy on write: the path from a changed leaf to the root is made anew, everything else is shared.

A maintainer must not break: an existing node is never changed, and a new node gets its id only when
its final content is known, so every id handed out is a row that the new root reaches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping

from cynosure.persistence.index.limits import IndexLimits
from cynosure.persistence.index.node import EMPTY_LEAF, Inner, Leaf, Node, NodeLoader, child_of, load_all
from cynosure.persistence.index.shape import fits_root, has_same_shape, is_tiny, joined, may_join, split
from cynosure.persistence.spi import ObjId

_LOAD_BATCH = 64
_PULL_UP_SHARE = 1 / 2


class _Slot:
    """One child of an inner node while that node is made: stored (`id`) or not yet (`node`)."""

    __slots__ = ("has_shrunk", "id", "node", "separator")

    def __init__(
        self, separator: bytes, id: ObjId | None, node: Node | None, *, has_shrunk: bool = False
    ) -> None:
        self.separator = separator
        self.id = id
        self.node = node
        self.has_shrunk = has_shrunk


class Rewrite:
    """One change of one tree. `nodes` holds the rows to write when it is done."""

    def __init__(
        self,
        changes: Mapping[bytes, bytes | None],
        *,
        loader: NodeLoader,
        new_id: Callable[[], ObjId],
        limits: IndexLimits,
    ) -> None:
        self._keys = sorted(changes)
        self._values = [changes[key] for key in self._keys]
        self._loader = loader
        self._new_id = new_id
        self._limits = limits
        self.nodes: dict[ObjId, Node] = {}

    async def run(self, root: Node) -> Node:
        """The new embedded root."""
        edited = await self._edit(root, 0, len(self._keys))
        return root if edited is root else self._grow(self._shrink(edited or EMPTY_LEAF))

    def _shrink(self, root: Node) -> Node:
        """Pull an only child up into the commit object, when it fits well and is at hand."""
        while isinstance(root, Inner) and root.count == 1:
            id = root.children[0]
            child = self.nodes.get(id) or self._loader.get(id)
            if child is None or not fits_root(child, self._limits, share=_PULL_UP_SHARE):
                break
            self.nodes.pop(id, None)
            root = child_of(root, child)
        return root

    def _grow(self, root: Node) -> Node:
        """Move a root that is too large for the commit object into rows under a new one."""
        while not fits_root(root, self._limits):
            pieces = split(root, self._limits)
            separators = [separator for separator, _ in pieces[1:]]
            root = Inner.of(root.level + 1, separators, [self._store(node) for _, node in pieces])
        return root

    def _store(self, node: Node) -> ObjId:
        id = self._new_id()
        self.nodes[id] = node
        return id

    async def _edit(self, node: Node, low: int, high: int) -> Node | None:
        """`node` after the changes `low` to `high`: itself when equal, `None` when empty, maybe too full."""
        if isinstance(node, Leaf):
            leaf = node.apply(self._keys[low:high], self._values[low:high])
            return leaf if leaf.count else None
        edits = await self._edit_children(node, low, high)
        if not edits:
            return node
        if all(len(slots) == 1 and not slots[0].has_shrunk for slots in edits.values()):
            return node.replaced({at: self._id_of(slots[0]) for at, slots in edits.items()})
        slots: list[_Slot] = []
        for at, child in enumerate(node.children):
            separator = node.separators[at - 1] if at else b""
            for slot in edits.get(at, (_Slot(b"", child, None),)):
                slot.separator = slot.separator or separator
                slots.append(slot)
        await self._join_tiny(node, slots)
        if not slots:
            return None
        return Inner.of(
            node.level, [slot.separator for slot in slots[1:]], [self._id_of(slot) for slot in slots]
        )

    def _id_of(self, slot: _Slot) -> ObjId:
        if slot.id is None:
            assert slot.node is not None  # noqa: S101 - a slot has one or the other
            slot.id = self._store(slot.node)
        return slot.id

    async def _edit_children(self, node: Inner, low: int, high: int) -> dict[int, list[_Slot]]:
        """What takes the place of each changed child."""
        touched: list[tuple[int, int, int]] = []
        while low < high:
            at = bisect_right(node.separators, self._keys[low])
            is_last = at == len(node.separators)
            end = high if is_last else bisect_left(self._keys, node.separators[at], low, high)
            touched.append((at, low, end))
            low = end
        edits: dict[int, list[_Slot]] = {}
        for start in range(0, len(touched), _LOAD_BATCH):
            batch = touched[start : start + _LOAD_BATCH]
            children = await load_all(self._loader, [node.children[at] for at, _, _ in batch])
            for (at, first, end), child in zip(batch, children, strict=True):
                edited = await self._edit(child_of(node, child), first, end)
                if edited is not child:
                    edits[at] = self._replacing(child, edited, first)
        return edits

    def _replacing(self, child: Node, edited: Node | None, first: int) -> list[_Slot]:
        if edited is None:
            return []
        if has_same_shape(child, edited):
            return [_Slot(b"", None, edited)]
        pieces = split(edited, self._limits, is_append=_is_append(child, self._keys[first]))
        has_shrunk = edited.count < child.count and is_tiny(edited, self._limits)
        return [_Slot(separator, None, piece, has_shrunk=has_shrunk) for separator, piece in pieces]

    async def _join_tiny(self, parent: Inner, slots: list[_Slot]) -> None:
        """Join children that became tiny with a neighbour, so that dropped names leave no husks behind."""
        at = 0
        while at < len(slots):
            if not slots[at].has_shrunk:
                at += 1
                continue
            slots[at].has_shrunk = False
            for left in (at - 1, at):
                if left < 0 or left + 1 >= len(slots):
                    continue
                low, high = (
                    await self._node_of(parent, slots[left]),
                    await self._node_of(parent, slots[left + 1]),
                )
                if may_join(low, high, self._limits):
                    node = joined(low, slots[left + 1].separator, high)
                    # The joined node may itself be tiny still: it is looked at again.
                    tiny = is_tiny(node, self._limits)
                    slots[left : left + 2] = [_Slot(slots[left].separator, None, node, has_shrunk=tiny)]
                    at = left
                    break

    async def _node_of(self, parent: Inner, slot: _Slot) -> Node:
        if slot.node is None:
            assert slot.id is not None  # noqa: S101 - a slot has one or the other
            slot.node = child_of(parent, self._loader.get(slot.id) or await self._loader.load(slot.id))
        return slot.node


def _is_append(node: Node, first_key: bytes) -> bool:
    """Whether a change that begins at `first_key` lies wholly at the end of `node`."""
    if isinstance(node, Leaf):
        return first_key > node.keys.last
    return not node.separators or first_key >= node.separators[-1]
