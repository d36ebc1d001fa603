"""The command line of Apache Polaris, as its index has it."""

from pathlib import Path

from tests.engines.tool_environment import install_tool


def install_polaris() -> Path:
    """The Python of its environment."""
    return install_tool("polaris-cli", Path(__file__).with_name("requirements.txt"))
