"""Keys in the environment that lead nowhere: a client that uses them instead of what it was given fails."""

from typing import Final

POISON: Final = {
    "AWS_ACCESS_KEY_ID": "AKIAPOISON",
    "AWS_SECRET_ACCESS_KEY": "poison",
    "AWS_SESSION_TOKEN": "poison",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
