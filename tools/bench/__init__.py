"""Compares usp's speed and memory with those of other sitemap readers, in one run and on the same files.

`documents` writes the files, `server` and `delayed` serve sites, `environments` installs what is compared against,
`worker` and its `crawls` run under the Python of each, `measure` asks workers in turn, `rows`, `wholes` and `networks`
say what is compared and wanted, `report` draws the table, and `cli` is the command.
"""
