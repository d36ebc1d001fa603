"""The kit itself: all chapters in one class, because a binding subclasses one thing."""

import pytest

from cynosure.testing.task_store_kit.changes import ChangeTests
from cynosure.testing.task_store_kit.fencing import FencingTests
from cynosure.testing.task_store_kit.leasing import LeasingTests
from cynosure.testing.task_store_kit.lists import ListTests
from cynosure.testing.task_store_kit.receipts import ReceiptTests
from cynosure.testing.task_store_kit.times import TimeTests


@pytest.mark.anyio
class TaskStoreKit(ChangeTests, LeasingTests, FencingTests, ReceiptTests, ListTests, TimeTests):
    """Tests that hold for all stores of tasks. No test may name a database."""
