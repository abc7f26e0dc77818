"""The version of usp."""

__version__ = "2.0.0rc1"
