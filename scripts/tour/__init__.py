"""The steps of `scripts/demo`: one module for each thing that is shown, and the stage they share.

What a step shows really happens, or the tour fails. To extend it, write a step and name it in `scripts/demo`.
"""
