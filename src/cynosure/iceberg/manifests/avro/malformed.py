"""What reading raises inside this package; `InvalidManifest` names the file as well."""


class Malformed(Exception):
    """The bytes are not what they should be. `position` is an offset in the file, if it is known."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
