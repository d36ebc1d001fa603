"""Access to Azure Blob Storage and Data Lake Storage.

- `account.py`     the storage account of a configuration: its name and its address
- `tokens.py`      tokens of the registered application, and the key that they are exchanged for
- `signature.py`   shared access signatures made with that key
- `vendor.py`      signatures for clients, for a container or a directory in it

A maintainer must not break: clients get signatures only, never a token: a token of ours opens the account.
"""
