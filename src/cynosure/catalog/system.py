"""The server itself, as a principal."""

from typing import Final

SYSTEM: Final = "system"
"""Principal of what the server does by itself."""
