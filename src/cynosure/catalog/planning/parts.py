"""A long plan cut into parts, by what the manifest list says alone: no manifest is read for it.

A maintainer must not break: parts are told to clients and come back, also to servers of another version. They
name manifests by their place in the unfiltered list and files by their place in the manifest, which nobody's
idea of pruning changes; and together they are everything.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from cynosure.iceberg.manifests.manifest_list import ManifestFile


class Part(Struct, frozen=True, array_like=True):
    """Some of the files of a plan, in its order."""

    first: int = 0
    """Place of its first manifest in the list."""
    row: int = 0
    """Place of its first file in that manifest."""
    end: int | None = None
    """Place of the manifest behind its last one; None for all the rest of the plan."""
    end_row: int | None = None
    """Of a part of one manifest: place of the file behind its last one; None for the rest of it."""


EVERYTHING = Part()


class Listed(Struct, frozen=True):
    """A manifest that a plan needs, and its place in the list."""

    at: int
    manifest: ManifestFile


def cut(listed: Sequence[Listed], rest: Part, page_files: int) -> Iterator[Part]:
    """Parts of about `page_files` files, from the beginning of `rest` to the end of the list."""
    start: int | None = None
    files, row = 0, rest.row
    end = rest.first
    for each in listed:
        if each.at < rest.first:
            continue
        if each.at > rest.first:
            row = 0
        count = _count(each.manifest, page_files)
        if row or count >= 2 * page_files:
            if start is not None:
                yield Part(start, 0, each.at)
                start, files = None, 0
            while row + page_files < count:
                yield Part(each.at, row, each.at + 1, row + page_files)
                row += page_files
            yield Part(each.at, row, each.at + 1)
            row = 0
            continue
        if start is None:
            start = each.at
        files += count
        end = each.at + 1
        if files >= page_files:
            yield Part(start, 0, end)
            start, files = None, 0
    if start is not None:
        yield Part(start, 0, end)


def behind(part: Part, at: int, row: int) -> Iterator[Part]:
    """What is left of a part that was read up to a file of one of its manifests."""
    yield Part(at, row, at + 1, part.end_row)
    if part.end is not None and at + 1 < part.end:
        yield Part(at + 1, 0, part.end)


def _count(manifest: ManifestFile, page_files: int) -> int:
    """How many files a manifest lists; a page full when nobody says."""
    counts = (manifest.added_files, manifest.existing_files, manifest.deleted_files)
    return page_files if None in counts else sum(count or 0 for count in counts)
