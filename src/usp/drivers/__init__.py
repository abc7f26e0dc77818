"""Drivers run a walk with a web client. Retries and waits live here, and nowhere else.

- `schedule` decides which request starts when, and what to do with its result; `hosts` how to treat each host.
- `blocking` and `asynchronous` are the two drivers: a short loop around the schedule.
- `fetch` turns a client's response into a document or a failure; `options` checks the parameters of the front doors.
"""
