"""Searches for documents that usp reads wrongly, guided by the coverage of its Python and its compiled code.

`target` states what must hold for any bytes. `seeds` are the documents that the search starts from. `workshop` makes
the environment in `.fuzz/` and builds the compiled parts for it, with `coverage.c` linked in. `worker` runs there,
under atheris. `cli` is the command.
"""
