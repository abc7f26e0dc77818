"""Tests of the explorer in a browser: real servers, and Debian's chromium."""
