"""Bytes in, entries out. Opens no socket and no file, and never raises for what a document holds."""
