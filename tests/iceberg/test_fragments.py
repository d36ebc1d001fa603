"""Fragments against a plain list, and what the store relies on: identity of chunks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from cynosure.iceberg.fragments import CHUNK, EMPTY, Chunk, Fragments

KEYS = st.integers(min_value=0, max_value=60)


def entry(key: int, salt: int = 0) -> tuple[int, bytes]:
    return key, b'{"key":%d,"pad":"%b"}' % (key, b"x" * (salt % 5))


def check(fragments: Fragments, model: list[tuple[int, bytes]]) -> None:
    assert list(fragments) == model
    assert len(fragments) == len(model)
    assert list(fragments.keys()) == [key for key, _ in model]
    assert json.loads(b"[%b]" % fragments.joined()) == [json.loads(one) for _, one in model]
    assert all(0 < len(chunk.keys) <= CHUNK for chunk in fragments.chunks)
    assert fragments.last() == (model[-1] if model else None)
    assert Fragments(fragments.chunks) == fragments == Fragments.of(model)


class Versions(RuleBasedStateMachine):
    """Many versions that share parts; each must go on answering as its own list does."""

    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[Fragments, list[tuple[int, bytes]]]] = []

    def keep(self, fragments: Fragments, model: list[tuple[int, bytes]]) -> int:
        check(fragments, model)
        self.all.append((fragments, model))
        return len(self.all) - 1

    @rule(target=versions, keys=st.lists(KEYS, unique=True, max_size=50))
    def make(self, keys):
        entries = [entry(key) for key in keys]
        return self.keep(Fragments.of(entries), entries)

    @rule(target=versions)
    def start_empty(self):
        return self.keep(EMPTY, [])

    @rule(target=versions, at=versions, key=KEYS, salt=st.integers(0, 9))
    def append(self, at, key, salt):
        fragments, model = self.all[at]
        if any(key == one for one, _ in model):
            return multiple()
        return self.keep(fragments.append(*entry(key, salt)), [*model, entry(key, salt)])

    @rule(target=versions, at=versions, keys=st.sets(KEYS, max_size=30))
    def without(self, at, keys):
        fragments, model = self.all[at]
        result = fragments.without(keys)
        if not any(key in keys for key, _ in model):
            assert result is fragments
        return self.keep(result, [one for one in model if one[0] not in keys])

    @rule(target=versions, at=versions, count=st.integers(0, 40))
    def keep_last(self, at, count):
        fragments, model = self.all[at]
        return self.keep(fragments.keep_last(count), model[-count:] if count else [])

    @rule(target=versions, at=versions, other=versions)
    def cut_like(self, at, other):
        (fragments, model), (before, _) = self.all[at], self.all[other]
        return self.keep(fragments.cut_like(before), model)

    @rule(at=versions, key=KEYS)
    def find(self, at, key):
        fragments, model = self.all[at]
        assert fragments.find(key) == dict(model).get(key)
        assert (key in fragments) == (key in dict(model))

    @rule(at=versions, keys=st.lists(KEYS, max_size=8))
    def refs_only(self, at, keys):
        fragments, model = self.all[at]
        wanted = [json.loads(one) for key, one in model if key in keys]
        assert json.loads(b"[%b]" % fragments.refs_only(keys)) == wanted

    @rule(at=consumes(versions))
    def forget(self, at):
        check(*self.all[at])

    @invariant()
    def old_versions_are_untouched(self):
        for fragments, model in self.all[-3:]:
            check(fragments, model)


TestVersions = Versions.TestCase


def test_an_append_shares_all_chunks_but_the_last():
    before = Fragments.of([entry(key) for key in range(3 * CHUNK + 1)])

    after = before.append(*entry(1000))

    assert all(one is other for one, other in zip(before.chunks[:-1], after.chunks[:-1], strict=True))
    assert after.chunks[-1].keys == (3 * CHUNK, 1000)


def test_an_append_to_full_chunks_shares_all_of_them():
    before = Fragments.of([entry(key) for key in range(2 * CHUNK)])

    after = before.append(*entry(1000))

    assert after.chunks[:-1] == before.chunks
    assert all(one is other for one, other in zip(before.chunks, after.chunks, strict=False))


def test_a_removal_rewrites_only_the_chunk_that_lost_something():
    before = Fragments.of([entry(key) for key in range(4 * CHUNK)])

    after = before.without([CHUNK + 1])

    assert [one is other for one, other in zip(before.chunks, after.chunks, strict=True)] == [
        True,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(("lost", "shared"), [(0, 4), (CHUNK, 3), (3, 3)])
def test_what_is_read_anew_shares_the_chunks_that_say_the_same(lost, shared):
    entries = [entry(key) for key in range(4 * CHUNK + 5)]
    before = Fragments.of(entries)

    after = Fragments.of([*entries[lost:], entry(1000)]).cut_like(before)

    assert list(after) == [*entries[lost:], entry(1000)]
    assert sum(one is other for one in before.chunks for other in after.chunks) == shared


def test_an_entry_that_says_something_else_is_not_shared():
    before = Fragments.of([entry(key) for key in range(3 * CHUNK)])
    changed = [entry(key, salt=key == CHUNK) for key in range(3 * CHUNK)]

    after = Fragments.of(changed).cut_like(before)

    assert list(after) == changed
    assert after.chunks[0] is before.chunks[0]


def test_chunks_that_became_small_grow_together():
    fragments = Fragments.of([entry(key) for key in range(10 * CHUNK)])

    for key in range(10 * CHUNK):
        if key % CHUNK:
            fragments = fragments.without([key])

    assert len(fragments) == 10
    assert len(fragments.chunks) <= 2


def test_expiring_from_the_front_while_appending_keeps_chunks_full():
    fragments = EMPTY
    for key in range(500):
        fragments = fragments.append(*entry(key))
        fragments = fragments.without([key - 40])
        assert key in fragments
        assert key - 40 not in fragments

    assert len(fragments) == 40
    assert len(fragments.chunks) <= 4


def test_a_given_up_append_does_not_show_in_its_sibling():
    base = Fragments.of([entry(key) for key in range(40)])
    assert 7 in base

    lost = base.append(*entry(100)).append(*entry(101))
    won = base.append(*entry(101))

    assert 100 in lost
    assert 100 not in won
    assert 100 not in base
    assert lost.find(101) == won.find(101) == entry(101)[1]


def test_tables_that_began_empty_do_not_know_each_others_keys():
    assert 1 not in EMPTY

    one, other = EMPTY.append(*entry(1)), EMPTY.append(*entry(2))

    assert 1 in one
    assert 1 not in other
    assert 1 not in EMPTY


def test_many_given_up_appends_are_forgotten_in_the_end():
    base = Fragments.of([entry(key) for key in range(40)])
    assert 7 in base
    for key in range(1000, 2000):
        base.append(*entry(key))

    after = base.append(*entry(5000))

    assert after.find(5000) == entry(5000)[1]
    assert after.find(7) == entry(7)[1]
    assert 1500 not in after


@given(st.lists(KEYS, max_size=60))
def test_keys_may_repeat_in_a_log(keys):
    fragments = Fragments.of([entry(key, at) for at, key in enumerate(keys)])

    assert [key for key, _ in fragments] == keys
    assert all(key in fragments for key in keys)


def test_entries_of_any_bytes_come_back_as_they_were():
    odd = ['{"a":"é\\u0000"}'.encode(), b"{}", b'{"b":[1,2,{"c":"],["}]}']

    fragments = Fragments.of(enumerate(odd))

    assert [fragments.find(at) for at in range(3)] == odd


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_chunk_gives_each_entry(at):
    chunk = Chunk((5, 6, 7), (2, 5, 13), b'{},{},{"a":1}')

    assert chunk.get(at) == [b"{}", b"{}", b'{"a":1}'][at]
