"""The kit: all of its chapters."""

import pytest

from cynosure.testing.idempotency_kit.answers import Answers
from cynosure.testing.idempotency_kit.deaths import Deaths
from cynosure.testing.idempotency_kit.lifetimes import Lifetimes
from cynosure.testing.idempotency_kit.payloads import Payloads
from cynosure.testing.idempotency_kit.progress import Progress


@pytest.mark.anyio
class IdempotencyKit(Answers, Payloads, Progress, Deaths, Lifetimes):
    """Tests that hold for servers on all databases. No test may name a database."""
