"""The kit itself: all chapters in one class, because a binding subclasses one thing."""

import pytest

from cynosure.testing.backend_kit.conditional_rows import ConditionalRowTests
from cynosure.testing.backend_kit.histories import HistoryTests
from cynosure.testing.backend_kit.immutable_rows import ImmutableRowTests
from cynosure.testing.backend_kit.lifecycle import LifecycleTests
from cynosure.testing.backend_kit.many_conditional_writes import ManyConditionalWriteTests
from cynosure.testing.backend_kit.references import ReferenceTests
from cynosure.testing.backend_kit.scans import ScanTests
from cynosure.testing.backend_kit.turns import TurnTests


@pytest.mark.anyio
class BackendKit(
    LifecycleTests,
    ImmutableRowTests,
    ConditionalRowTests,
    ManyConditionalWriteTests,
    ScanTests,
    ReferenceTests,
    TurnTests,
    HistoryTests,
):
    """Tests that hold for all backends. No test may name a database."""
