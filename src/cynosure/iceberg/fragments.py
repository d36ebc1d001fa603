"""An immutable sequence of pre-encoded JSON objects, kept in small immutable chunks.

A table's snapshots and logs grow with every commit and hardly ever change otherwise. Here an append makes
one new chunk and shares all the others with the sequence it came from, so a store writes one chunk per
commit, and a response joins chunks without looking into them.

A maintainer must not break: a chunk that loses or gains nothing keeps its identity across every operation
(the store rewrites what is new by identity), and no operation changes what an older sequence answers.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

CHUNK: Final = 16
"""Entries per chunk. Lives in stored data only as a habit: chunks of other sizes are read and kept."""

Entry = tuple[int, bytes]


class Chunk(Struct, frozen=True):
    """Up to `CHUNK` entries. `json` holds them joined by commas; entry i ends at `ends[i]`."""

    keys: tuple[int, ...]
    ends: tuple[int, ...]
    json: bytes

    def get(self, at: int) -> bytes:
        """The JSON of one entry."""
        return self.json[self.ends[at - 1] + 1 if at else 0 : self.ends[at]]

    def entries(self) -> Iterator[Entry]:
        """All entries in order."""
        start = 0
        for key, end in zip(self.keys, self.ends, strict=True):
            yield key, self.json[start:end]
            start = end + 1


class Fragments:
    """Ordered (key, JSON) entries. Keys may repeat; `find` then answers with one of them."""

    __slots__ = ("_count", "_first", "_index", "chunks")

    def __init__(
        self,
        chunks: tuple[Chunk, ...] = (),
        *,
        _count: int | None = None,
        _first: int = 0,
        _index: dict[int, int] | None = None,
    ) -> None:
        self.chunks = chunks
        self._count = sum(len(chunk.keys) for chunk in chunks) if _count is None else _count
        # Key -> chunk number, counted so that dropping chunks from the front changes no number: chunk n is
        # `chunks[n - _first]`. The dict is shared with the sequences this one came from and those made from
        # it. It names every key of each of them, so a key that is not in it is absent; a key that is in it
        # may be another sequence's, so what it says is checked in the chunk before it is believed.
        self._first = _first
        self._index = _index

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Fragments":
        """A sequence of full chunks."""
        return cls(_pack(list(entries)))

    def append(self, key: int, json: bytes) -> "Fragments":
        """A sequence with one more entry; all chunks but the last are shared."""
        chunks = self.chunks
        if chunks and len(chunks[-1].keys) < CHUNK:
            last = chunks[-1]
            end = len(last.json) + 1 + len(json)
            grown = Chunk((*last.keys, key), (*last.ends, end), b"%b,%b" % (last.json, json))
            chunks = (*chunks[:-1], grown)
        else:
            chunks = (*chunks, Chunk((key,), (len(json),), json))
        index = self._index
        if index is not None:
            # Attempts that were given up leave their keys behind; too many, and the next look-up starts
            # afresh. Never shared from an empty sequence: all new tables begin with the same one.
            if not self.chunks or len(index) > 2 * self._count + 256:
                index = None
            else:
                index[key] = self._first + len(chunks) - 1
        return Fragments(chunks, _count=self._count + 1, _first=self._first, _index=index)

    def find(self, key: int) -> bytes | None:
        """The JSON of the entry with this key."""
        place = self._find_place(key)
        return None if place is None else self.chunks[place[0]].get(place[1])

    def find_chunk(self, key: int) -> int | None:
        """The number of the chunk that holds this key."""
        place = self._find_place(key)
        return None if place is None else place[0]

    def __contains__(self, key: int) -> bool:
        return self._find_place(key) is not None

    def without(self, keys: Collection[int]) -> "Fragments":
        """A sequence that lost every entry with one of these keys."""
        doomed = frozenset(keys)
        kept: list[Chunk] = []
        changed: list[bool] = []
        is_index_true = True
        for chunk in self.chunks:
            if doomed.isdisjoint(chunk.keys):
                rest, is_changed = chunk, False
            else:
                remaining = [entry for entry in chunk.entries() if entry[0] not in doomed]
                if not remaining:
                    is_index_true = is_index_true and not kept
                    continue
                rest, is_changed = _join(remaining), True
            # Small neighbours grow together, or a table that expires snapshots ends as one entry per chunk.
            if kept and (is_changed or changed[-1]) and len(kept[-1].keys) + len(rest.keys) <= CHUNK:
                kept[-1] = _join([*kept[-1].entries(), *rest.entries()])
                changed[-1] = True
                is_index_true = False
            else:
                kept.append(rest)
                changed.append(is_changed)
        if len(kept) == len(self.chunks) and not any(changed):
            return self
        dropped = len(self.chunks) - len(kept)
        return Fragments(
            tuple(kept),
            _first=self._first + dropped,
            _index=self._index if is_index_true else None,
        )

    def keep_last(self, count: int) -> "Fragments":
        """A sequence of at most the last `count` entries."""
        excess = self._count - count
        if excess <= 0:
            return self
        at = 0
        while at < len(self.chunks) and excess >= len(self.chunks[at].keys):
            excess -= len(self.chunks[at].keys)
            at += 1
        rest = self.chunks[at:]
        if excess:
            rest = (_join(list(rest[0].entries())[excess:]), *rest[1:])
        return Fragments(rest, _count=max(count, 0), _first=self._first + at, _index=self._index)

    def cut_like(self, other: "Fragments") -> "Fragments":
        """The same entries, in the chunks of another sequence as far as it has them.

        For a sequence that was read anew, so that it shares with the one before what both have. Where it has
        lost its oldest entries, its first chunk is the end of one of the other's.
        """
        entries, at = list(self), 0
        shared: list[Chunk] = []
        for chunk in other.chunks:
            lost = 0 if shared else _count_lost(chunk, entries)
            if lost == len(chunk.keys):
                continue
            if len(chunk.keys) < CHUNK and chunk is other.chunks[-1]:
                break  # It still grows.
            part = _join(entries[at : at + len(chunk.keys) - lost])
            start = chunk.ends[lost - 1] + 1 if lost else 0
            if part.keys != chunk.keys[lost:] or part.json != chunk.json[start:]:
                break
            shared.append(part if lost else chunk)
            at += len(part.keys)
        return Fragments((*shared, *_pack(entries[at:])), _count=self._count)

    def joined(self) -> bytes:
        """All entries as the inside of a JSON array."""
        return b",".join([chunk.json for chunk in self.chunks])

    def refs_only(self, keys: Iterable[int]) -> bytes:
        """The entries with these keys as the inside of a JSON array, in order, each once."""
        places = {place for key in keys if (place := self._find_place(key)) is not None}
        return b",".join([self.chunks[chunk].get(at) for chunk, at in sorted(places)])

    def keys(self) -> Iterator[int]:
        """All keys in order."""
        for chunk in self.chunks:
            yield from chunk.keys

    def last(self) -> Entry | None:
        """The newest entry."""
        if not self.chunks:
            return None
        chunk = self.chunks[-1]
        return chunk.keys[-1], chunk.get(len(chunk.keys) - 1)

    def __iter__(self) -> Iterator[Entry]:
        for chunk in self.chunks:
            yield from chunk.entries()

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fragments):
            return NotImplemented
        return self.chunks == other.chunks or (self._count == other._count and list(self) == list(other))

    __hash__ = None  # type: ignore[assignment]  # equal sequences may be cut differently

    def __repr__(self) -> str:
        return f"Fragments({self._count} entries in {len(self.chunks)} chunks)"

    def _find_place(self, key: int) -> tuple[int, int] | None:
        index = self._index
        if index is None:
            index = self._index = {
                one: number for number, chunk in enumerate(self.chunks, self._first) for one in chunk.keys
            }
        number = index.get(key)
        if number is None:
            return None
        at = number - self._first
        if 0 <= at < len(self.chunks) and key in self.chunks[at].keys:
            return at, self.chunks[at].keys.index(key)
        for at, chunk in enumerate(self.chunks):
            if key in chunk.keys:
                return at, chunk.keys.index(key)
        return None


EMPTY: Final = Fragments()


def _join(entries: list[Entry]) -> Chunk:
    ends: list[int] = []
    end = -1
    for _, json in entries:
        end += 1 + len(json)
        ends.append(end)
    return Chunk(tuple([key for key, _ in entries]), tuple(ends), b",".join([json for _, json in entries]))


def _count_lost(chunk: Chunk, entries: list[Entry]) -> int:
    """How many of a chunk's entries are before the first of these; all where none of them is it."""
    first = entries[0][0] if entries else None
    return chunk.keys.index(first) if first in chunk.keys else len(chunk.keys)


def _pack(entries: list[Entry]) -> tuple[Chunk, ...]:
    return tuple([_join(entries[at : at + CHUNK]) for at in range(0, len(entries), CHUNK)])
