"""The servers that `scripts/services` starts: one module each, and what they have in common.

`machine` and `background` are shared; `services` names them all. To add one, write a class with the methods
of `services.Service` and name it there. Standard library only: this runs before anything is installed.
"""
