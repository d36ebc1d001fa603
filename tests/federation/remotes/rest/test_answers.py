"""Answers with anything wrong in them: a table or view, or an error of ours, and nothing else."""

import copy
import json
import random
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.common.errors import CynosureError
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.remote import RemoteTable, RemoteView
from cynosure.federation.remotes.rest.answers import (
    TableAnswer,
    ViewAnswer,
    read_table,
    read_tag,
    read_view,
)
from cynosure.federation.remotes.transport import Answered
from cynosure.iceberg.views import encode_view
from cynosure.testing.remote_samples import plan_view

from .liars import ORDERS, PLACE, table_answer

pytestmark = pytest.mark.anyio

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**64, 1e308, 0.5, "", "x", "\u0000", "../..", "9" * 5000,
    [], [None], [[[[]]]], {}, {"": ""}, {"id": 1}, [1, 2, 3] * 1000,
)  # fmt: skip
ROUNDS = 400


def fail(problem: str) -> CynosureError:
    return RemoteMisbehaved("near", problem=problem)


def spoil(document: Any, rng: random.Random) -> Any:
    """The same document with one thing replaced, taken away or doubled."""
    spoiled = copy.deepcopy(document)
    inside, parent, at = spoiled, None, None
    while isinstance(inside, dict | list) and inside and (parent is None or rng.random() < 0.8):
        parent = inside
        at = rng.choice(list(inside)) if isinstance(inside, dict) else rng.randrange(len(inside))
        inside = inside[at]
    if parent is None:
        return rng.choice(JUNK)
    deed = rng.randrange(3)
    if deed == 0:
        del parent[at]
    elif deed == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(inside))
    else:
        parent[at] = rng.choice(JUNK)
    return spoiled


@pytest.mark.parametrize("number", range(4))
async def test_a_spoiled_table_is_a_table_or_misbehavior(number: int):
    rng = random.Random(number)
    honest = table_answer()
    seen: set[type] = set()
    for _ in range(ROUNDS):
        body = json.dumps(spoil(honest, rng)).encode()
        try:
            told = msgspec.json.decode(body, type=TableAnswer)
        except msgspec.ValidationError:
            continue
        try:
            answer = Answered(200, httpx.Headers(), body)
            tag = read_tag(answer, told.metadata_location, "here", fail)
            seen.add(type(await read_table(told, tag, fail)))
        except RemoteMisbehaved:
            seen.add(RemoteMisbehaved)

    assert seen == {RemoteTable, RemoteMisbehaved}


@pytest.mark.parametrize("number", range(4))
async def test_a_spoiled_view_is_a_view_or_misbehavior(number: int):
    rng = random.Random(number)
    metadata = json.loads(encode_view(plan_view(PLACE, ORDERS)))
    honest = {"metadata-location": "file:///lake/view/metadata/1.json", "metadata": metadata}
    seen: set[type] = set()
    for _ in range(ROUNDS):
        body = json.dumps(spoil(honest, rng)).encode()
        try:
            told = msgspec.json.decode(body, type=ViewAnswer)
        except msgspec.ValidationError:
            continue
        try:
            answer = Answered(200, httpx.Headers(), body)
            tag = read_tag(answer, told.metadata_location, "here", fail)
            seen.add(type(await read_view(told, tag, fail)))
        except RemoteMisbehaved:
            seen.add(RemoteMisbehaved)

    assert seen == {RemoteView, RemoteMisbehaved}
