"""Searches for documents that usp reads wrongly, guided by the coverage of its Python and its compiled code.

`target` says what must hold for any bytes; `seeds` are the documents that the search starts from; `workshop` makes the
environment, with the compiled parts built for it, in `.fuzz/`; `worker` runs there, under atheris; `cli` is the
command. `coverage.c` is linked into the compiled parts.
"""
