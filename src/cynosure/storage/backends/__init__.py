"""One module per storage, each an implementation of `storage.fileio.FileIO`.

A maintainer must not break: they do not know each other, and a driver is imported only by its own module.
"""
