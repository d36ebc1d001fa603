"""Measurements of what this project promises; see README.md in this folder."""
