"""What people read while a command waits for a server that says to come back later."""

from datetime import UTC, datetime

from cynosure.cli.output import harmless, tell
from cynosure.client.waiting import Wait


def tell_wait(wait: Wait) -> None:
    """One line on standard error: what is waited for, and until when."""
    until = datetime.fromtimestamp(wait.until_us / 1_000_000, UTC).astimezone()
    said = wait.error.message
    if wait.status:
        said = f"the server answers {wait.status} ({said})"
    tell(harmless(f"Waiting: {said}. Trying again until {until:%H:%M:%S}; Ctrl-C ends it."))
