"""Manifest lists and manifests from bytes into the paths they name. No I/O: also runs on Spark's executors.

A maintainer must not break: a file that is not whole is an `InvalidManifest`, never a shorter answer.
"""

from msgspec import structs

from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest, read_spec_id


def list_manifests(data: bytes, path: str) -> list[ManifestFile]:
    """The manifests of a list, as little of them as reading them takes."""
    return [structs.replace(each, partitions=None) for each in read_manifest_list(data, path=path).manifests]


def list_content(data: bytes, path: str, listed: ManifestFile | None, *, with_deleted: bool) -> list[str]:
    """The files that a manifest names; `listed` is its line in a list, if it has one.

    `with_deleted`: also those that its snapshot removed, which earlier snapshots may still have.
    """
    if listed is None:
        spec_id = read_spec_id(data, path=path)
        listed = ManifestFile(path=path, length=len(data), spec_id=spec_id, added_snapshot_id=None)
    manifest = read_manifest(data, listed)
    return [
        found
        for found, status in zip(manifest.paths, manifest.statuses, strict=True)
        if found is not None and (with_deleted or status != Status.DELETED)
    ]
