from collections import Counter
from collections.abc import Sequence

import pytest

from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import ConditionalWrite, Insert, Reference, RefKey
from cynosure.testing.backend_kit import BackendKit


def test_no_chapter_of_the_kit_hides_a_test_of_another() -> None:
    chapters = BackendKit.__mro__[1:]

    names = Counter(name for chapter in chapters for name in vars(chapter) if name.startswith("test_"))

    assert names
    assert [name for name, times in names.items() if times > 1] == []


# --- backends that are wrong on purpose: a kit that cannot fail proves nothing ------------------------


class RemembersHeads(MemoryBackend):
    """Answers at once from what it was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: dict[RefKey, Reference | None] = {}

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        for key, ref in zip(keys, super().fetch_refs_now(keys), strict=True):
            self.remembered.setdefault(key, ref)
        return [self.remembered[key] for key in keys]


class IsOneBehind(MemoryBackend):
    """Answers at once with what it saw the time before, as a read that keeps its snapshot does."""

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[RefKey, Reference | None] = {}

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        found = super().fetch_refs_now(keys)
        answer = [self.last.get(key, ref) for key, ref in zip(keys, found, strict=True)]
        self.last.update(zip(keys, found, strict=True))
        return answer


class ForgetsAbsence(MemoryBackend):
    """Leaves out what does not exist."""

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        return [ref for ref in super().fetch_refs_now(keys) if ref is not None]


@pytest.mark.anyio
@pytest.mark.parametrize("mutant", [RemembersHeads, IsOneBehind, ForgetsAbsence])
async def test_a_stale_or_wrong_answer_at_once_is_caught(mutant: type[MemoryBackend]) -> None:
    backend = mutant()
    await backend.setup()

    with pytest.raises(AssertionError):
        await BackendKit().test_a_read_at_once_sees_what_any_handle_was_acknowledged_before(backend, backend)


@pytest.mark.anyio
async def test_the_memory_backend_itself_passes_where_they_fail() -> None:
    backend = MemoryBackend()
    await backend.setup()

    await BackendKit().test_a_read_at_once_sees_what_any_handle_was_acknowledged_before(backend, backend)


class WritesAllOrNone(MemoryBackend):
    """Makes many writes one."""

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        before = dict(self._store.rows)
        outcomes = await super().write_each(writes, is_relaxed=is_relaxed)
        if not all(outcomes):
            self._store.rows = before
        return [all(outcomes)] * len(outcomes)


class AnswersInKeyOrder(MemoryBackend):
    """Sorts its writes, and forgets how they came."""

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        return await super().write_each(sorted(writes, key=lambda write: write.key), is_relaxed=is_relaxed)


class PutsInsteadOfInserting(MemoryBackend):
    """Takes the place of what is there, as a careless upsert does."""

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        for write in writes:
            if isinstance(write, Insert):
                self._store.rows.pop(write.key, None)
        return await super().write_each(writes, is_relaxed=is_relaxed)


@pytest.mark.anyio
@pytest.mark.parametrize("mutant", [WritesAllOrNone, AnswersInKeyOrder, PutsInsteadOfInserting])
async def test_wrong_outcomes_of_many_writes_are_caught(mutant: type[MemoryBackend]) -> None:
    backend = mutant()
    await backend.setup()

    with pytest.raises(AssertionError):
        await BackendKit().test_each_write_of_a_call_has_the_outcome_it_would_have_alone(
            backend, backend, is_relaxed=False
        )
