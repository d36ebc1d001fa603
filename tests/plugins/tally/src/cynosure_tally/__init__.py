"""Counts the calls that a Cynosure store makes to its database."""
