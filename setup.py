"""Build the compiled modules. They are optional: without a compiler, or with USP_PURE=1, plain Python does the same.

All of them are built, or none is kept. Everything else about the package is in pyproject.toml.
"""

import os
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, ExecError, PlatformError

FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0"]
SOURCE = Path("src")
INTERFACE = SOURCE / "usp" / "compiled.py"  # has the number that the modules are built with


class BuildAllOrNone(build_ext):
    """Builds every extension. If one cannot be built, it removes the others, and the package is installed without."""

    def finalize_options(self):
        """Compile as many modules at once as there are processors, unless an option says otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Build the extensions."""
        try:
            super().build_extensions()
        except (BaseError, CCompilerError, ExecError, PlatformError, OSError) as error:
            self.announce(f"warning: usp is installed without its compiled modules: {error}", level=3)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []
            if wheel := self.distribution.get_command_obj("bdist_wheel", create=False):
                wheel.root_is_pure = True  # it fits every Python and platform


def extensions():
    """Return the extensions to build: none with USP_PURE=1, or without Cython."""
    if os.environ.get("USP_PURE", "") not in ("", "0"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    number = re.search(r"^INTERFACE = (\d+)", INTERFACE.read_text("utf-8"), re.MULTILINE)[1]
    options = {
        "extra_compile_args": FLAGS + os.environ.get("USP_CFLAGS", "").split(),
        "define_macros": [("USP_INTERFACE", number)],
        "depends": [str(INTERFACE)],
    }
    sources = sorted(SOURCE.rglob("*.pyx"))
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in sources]
    modules = [Extension(name, [str(path)], **options) for name, path in zip(names, sources, strict=True)]
    return cythonize(modules, build_dir="build", include_path=[str(SOURCE)], language_level=3)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNone})
