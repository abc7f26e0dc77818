"""Compares usp's speed and memory with those of other sitemap readers, in one run and on the same files.

`documents` writes the files, `environments` installs what is compared against, `worker` runs under the Python of each,
`measure` asks workers in turn, `rows` and `wholes` say what is compared and wanted, `report` draws the table, and `cli`
is the command.
"""
