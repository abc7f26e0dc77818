"""Builds the compiled parts, which are optional: without a compiler, or with USP_PURE=1, plain Python does the same.

Everything else is in pyproject.toml.
"""

import os
import sys

from setuptools import Extension, setup

FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0"]
MODULES = {"usp.objects._lazy": "src/usp/objects/_lazy.pyx", "usp.scan._plain": "src/usp/scan/_plain.pyx"}


def extensions():
    """The extensions to build; none where they are not wanted, or Cython is missing."""
    if os.environ.get("USP_PURE", "") not in ("", "0"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    flags = FLAGS + os.environ.get("USP_CFLAGS", "").split()
    modules = cythonize(
        [Extension(name, [source], extra_compile_args=flags) for name, source in MODULES.items()],
        build_dir="build",
        language_level=3,
    )
    for module in modules:
        module.optional = True  # only now: cythonize makes extensions of its own, and forgets this
    return modules


setup(ext_modules=extensions())
