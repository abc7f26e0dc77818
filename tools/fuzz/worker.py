"""Runs in the environment of `workshop`, with libFuzzer preloaded; its arguments are libFuzzer's.

Everything that is imported here is instrumented, so that the search learns which inputs reach new code.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])


def main() -> None:
    """Search until the time is up, or something is found."""
    atheris = import_module("atheris")  # it is nowhere but in that environment
    with atheris.instrument_imports(include=["usp"]):
        from fuzz.target import READ_BY, check
    if READ_BY["compiled"] is READ_BY["pure"]:
        sys.exit("the compiled parts cannot be imported")
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
