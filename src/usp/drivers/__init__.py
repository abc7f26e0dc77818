"""Drivers run a walk with a client. Retries and waits live here, and nowhere else."""
