"""A string that must not be shown.

`Secret` has no road to its text but `reveal()`, which is easy to search for. Whoever adds a method
here must not open a second one: printing, formatting, encoding and pickling all fail or give `***`.
"""

import hmac
import re
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

from cynosure.common.errors import Misconfigured

MASK = "***"

_SECRET = re.compile(
    "secret|passw|token|credential|accesskey|privatekey|apikey|accountkey|sharedkey|signature|sas$"
)
_USER_INFO = re.compile(r"://[^/?#\s]*:[^/?#\s]*@")


def looks_secret(name: str, value: str) -> bool:
    """Whether a property looks as if it held a secret: by its name, or by a password in an address."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return _SECRET.search(plain) is not None or _USER_INFO.search(value) is not None


class Secret:
    """A password, key or token. Prints as `***` everywhere."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def from_file(cls, path: Path) -> "Secret":
        """Read a secret file, without the line end that editors and `echo` leave."""
        try:
            text = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Misconfigured(
                "A secret file cannot be read",
                path=str(path),
                reason=type(error).__name__,
                fix="Check that the file exists, is UTF-8 text and is readable by this user.",
            ) from error
        if not text:
            raise Misconfigured(
                "A secret file is empty", path=str(path), fix="Write the secret into the file."
            )
        return cls(text)

    def reveal(self) -> str:
        """The text itself. Keep the result in a local variable, as briefly as possible."""
        return self._text

    def matches(self, candidate: str) -> bool:
        """Compare with plain text in constant time."""
        return hmac.compare_digest(self._text.encode(), candidate.encode("utf-8", "surrogatepass"))

    def __eq__(self, other: object) -> bool:
        return self.matches(other._text) if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        # Python salts string hashes per process, so this does not help to guess the text elsewhere.
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


def mask_url(url: str) -> str:
    """The URL without what may be secret in it: password, query values and fragment.

    A URL that does not split cleanly (an unescaped `/`, `#` or `@` in a password) loses all but its scheme.
    """
    try:
        parts = urlsplit(url)
        is_clean = parts.port is None or parts.port > 0
    except ValueError:
        is_clean = False
    if not is_clean or (parts.netloc and "@" in parts.path + parts.query + parts.fragment):
        return f"{url.partition(':')[0]}:{MASK}"
    user, at, host = parts.netloc.rpartition("@")
    password = f":{MASK}" if ":" in user else ""
    query = "&".join(f"{pair.partition('=')[0]}={MASK}" for pair in parts.query.split("&") if pair)
    return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{password}{at}{host}", parts.path, query, ""))
