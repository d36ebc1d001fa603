"""The sample view, and how to damage it."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.iceberg.views.samples import VIEW


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(VIEW)


@pytest.fixture
def change(document: dict[str, Any]) -> Callable[..., bytes]:
    """The document with one value replaced, or removed when none is given."""

    def apply(path: str, *value: Any) -> bytes:
        *parents, last = path.split(".")
        target: Any = document
        for part in parents:
            target = target[int(part) if part.isdigit() else part]
        key: Any = int(last) if last.isdigit() else last
        if value:
            target[key] = value[0]
        else:
            del target[key]
        return msgspec.json.encode(document)

    return apply
