"""Compares usp's speed and memory with those of other sitemap readers, in one run and on the same files.

`rows` is the table: one value for each row. `measures` measures them. `workshop` starts the processes that are measured
and the servers, `worker`, `crawls` and `small_sites` are what runs in them, `servers` and `documents` are what they
read. `report` draws the table, `against` compares two checkouts of usp, and `cli` is the command.
"""
