"""Runs in the environment that `workshop` makes, with libFuzzer preloaded; its arguments are those of libFuzzer.

The modules that it imports are instrumented, so that the search learns which inputs reach new code.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])


def main() -> None:
    """Search until the time is up, or something is found."""
    atheris = import_module("atheris")  # only that environment has it
    with atheris.instrument_imports(include=["usp"]):
        from fuzz.target import READ_BY, check
    if READ_BY["compiled"] is READ_BY["pure"]:
        sys.exit("the compiled parts cannot be imported")
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
