"""What a disk may hold after the power fails: a model of what POSIX promises, fed with the system calls of a program.

What a program wrote to a file is sure to be on disk after fsync of the file. A name in a folder, new, changed or
removed, is sure to be on disk after fsync of the folder. Until then either may be there or not, and what was written
may be there in full, in part, as zeros, or not at all. File systems promise more in practice, each something else.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["STRACE", "Disk", "Tree", "calls_of", "record", "write_tree"]

STRACE = shutil.which("strace")
#: A folder: its files and folders by their names.
Tree = dict[str, Any]
#: Chooses which of the pending operations of a folder have reached the disk, and what of a file.
Fate = tuple[Callable[[], bool], Callable[[bytes, bytes], bytes]]

_TRACED = (
    "open,openat,creat,write,writev,pwrite64,pwritev,ftruncate,truncate,lseek,dup,dup2,dup3,close,rename,renameat,"
    "renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,fdatasync,sync_file_range,copy_file_range,sendfile"
)
_LINE = re.compile(r"(\d+) +(?:<\.\.\. \w+ resumed>)?(.*)")
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?: .*)?", re.DOTALL)
_CLOSE = re.compile(r"close\((\d+)")
_ENDED = "? "  # in front of the rest of a call that was given already: no call's name
_ARGUMENT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(?:\.\.\.)?|([^,"]+)')


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that succeeded: its name, its arguments, bytes or text, and what it returned."""

    name: str
    arguments: tuple[bytes | str, ...]
    result: int


def record(command: Sequence[str], trace: Path, **options: Any) -> list[Call]:
    """Run a command under strace, and return its calls about files, in the order in which they took effect."""
    assert STRACE is not None
    strace = [STRACE, "-f", "-qq", "-xx", "-s", str(1 << 26), "-e", "signal=none", "-e", f"trace={_TRACED}"]
    subprocess.run([*strace, "-o", str(trace), *command], check=True, timeout=120, **options)
    return list(calls_of(trace))


def calls_of(trace: Path) -> Iterator[Call]:
    """Give the calls in the order in which they ended; a close when it began, because its number is free from then on.

    Another thread may get the number of a file that is being closed, and strace may tell of that first.
    """
    begun: dict[str, str] = {}
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            match = _LINE.fullmatch(line.rstrip("\n"))
            assert match is not None, line[:200]
            thread, text = match.groups()
            text = begun.pop(thread, "") + text.strip()
            if text.endswith("<unfinished ...>"):
                begun[thread] = text.removesuffix("<unfinished ...>")
                if (closed := _CLOSE.fullmatch(begun[thread].strip())) is not None:
                    begun[thread] = _ENDED  # close frees the number, whatever it returns
                    yield Call("close", (closed[1],), 0)
                continue
            call = _CALL.fullmatch(text)
            if call is not None and int(call[3]) >= 0:
                yield Call(call[1], tuple(_arguments(call[2])), int(call[3]))


def _arguments(text: str) -> Iterator[bytes | str]:
    for quoted, plain in _ARGUMENT.findall(text):
        if plain.strip():
            yield plain.strip()
        elif not plain:
            yield bytes.fromhex(quoted.replace("\\x", ""))


@dataclass(eq=False, slots=True)
class _File:
    written: bytearray = field(default_factory=bytearray)
    on_disk: bytes = b""


@dataclass(eq=False, slots=True)
class _Folder:
    """A folder. Each pending operation is a list of names, and what they become; None removes a name."""

    entries: dict[str, _File | _Folder] = field(default_factory=dict)
    on_disk: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[list[tuple[str, _File | _Folder | None]]] = field(default_factory=list)

    def change(self, *names: tuple[str, _File | _Folder | None]) -> None:
        _apply(self.entries, names)
        self.pending.append(list(names))

    def sync(self) -> None:
        self.on_disk, self.pending = dict(self.entries), []


def _apply(entries: dict[str, _File | _Folder], names: Sequence[tuple[str, _File | _Folder | None]]) -> None:
    for name, node in names:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


@dataclass(slots=True)
class _Open:
    node: _File | _Folder
    offset: int = 0


class Disk:
    """A folder on a disk, as the system calls of one process change it. What was there before is on the disk."""

    def __init__(self, root: Path) -> None:
        self._root_path = os.fsencode(root)
        self._root = _read(root)
        self._open: dict[int, _Open] = {}

    # What happens

    def apply(self, call: Call) -> bool:
        """Apply a call. Return whether it changes what the disk may hold, other than by writing."""
        handle = getattr(self, f"_on_{call.name}", None)
        assert handle is not None, f"the model does not know {call.name}"
        return bool(handle(call))

    def _on_openat(self, call: Call) -> bool:
        path, flags = call.arguments[1:3] if call.name == "openat" else call.arguments[:2]
        assert isinstance(path, bytes)
        assert isinstance(flags, str)
        place = self._place(path)
        self._open.pop(call.result, None)
        if place is None:
            return False
        folder, name = place
        node = folder.entries.get(name) if name else folder
        is_new = node is None
        if node is None:
            assert "O_CREAT" in flags
            folder.change((name, node := _File()))
        if "O_TRUNC" in flags:
            assert isinstance(node, _File)
            node.written.clear()
        is_at_end = "O_APPEND" in flags and isinstance(node, _File)
        self._open[call.result] = _Open(node, len(node.written) if is_at_end and isinstance(node, _File) else 0)
        return is_new

    _on_open = _on_openat

    def _on_close(self, call: Call) -> bool:
        self._open.pop(self._number(call), None)
        return False

    def _on_write(self, call: Call) -> bool:
        opened = self._open.get(self._number(call))
        if opened is not None:
            data = call.arguments[1]
            assert isinstance(opened.node, _File)
            assert isinstance(data, bytes)
            assert len(data) >= call.result
            opened.node.written[opened.offset : opened.offset + call.result] = data[: call.result]
            opened.offset += call.result
        return False

    def _on_lseek(self, call: Call) -> bool:
        opened = self._open.get(self._number(call))
        if opened is not None:
            opened.offset = call.result
        return False

    def _on_fsync(self, call: Call) -> bool:
        opened = self._open.get(self._number(call))
        assert opened is not None, f"fsync of a file that the model does not know: {call}"
        if isinstance(opened.node, _File):
            opened.node.on_disk = bytes(opened.node.written)
        else:
            opened.node.sync()
        return True

    _on_fdatasync = _on_fsync

    def _on_rename(self, call: Call) -> bool:
        old, new = call.arguments[:2]
        assert isinstance(old, bytes)
        assert isinstance(new, bytes)
        before, after = self._place(old), self._place(new)
        if before is None or after is None:
            assert before is after, "the model does not know how files come from elsewhere"
            return False
        (folder, name), (other, new_name) = before, after
        assert folder is other, "the model does not know how names move between folders"
        folder.change((name, None), (new_name, folder.entries[name]))
        return True

    def _on_unlink(self, call: Call) -> bool:
        path = call.arguments[0]
        assert isinstance(path, bytes)
        place = self._place(path)
        if place is not None:
            place[0].change((place[1], None))
        return place is not None

    def _on_mkdir(self, call: Call) -> bool:
        path = call.arguments[0]
        assert isinstance(path, bytes)
        place = self._place(path)
        if place is None or not place[1]:  # strace told of a file in the folder first: see `_place`
            return False
        place[0].change((place[1], _Folder()))
        return True

    def _unknown(self, call: Call) -> bool:
        """Refuse calls that change files of the folder in ways that this model does not know."""
        assert self._number(call) not in self._open, f"the model does not know {call.name}"
        return False

    _on_dup = _on_dup2 = _on_dup3 = _on_sendfile = _on_copy_file_range = _unknown
    _on_writev = _on_pwrite64 = _on_pwritev = _on_ftruncate = _unknown

    def _number(self, call: Call) -> int:
        return int(str(call.arguments[0]))

    def _place(self, path: bytes) -> tuple[_Folder, str] | None:
        """Return the folder of a path, and its name there; an empty name for the root. None if it is elsewhere."""
        path = os.path.normpath(path)
        if path != self._root_path and not path.startswith(self._root_path + b"/"):
            return None
        *parents, name = os.fsdecode(path[len(self._root_path) + 1 :]).split("/")
        folder = self._root
        for parent in parents:
            if parent not in folder.entries:  # strace may tell later that another thread has made it
                folder.change((parent, _Folder()))
            found = folder.entries[parent]
            assert isinstance(found, _Folder)
            folder = found
        node = folder.entries.get(name)
        return (node, "") if isinstance(node, _Folder) else (folder, name) if name else (folder, "")

    # What may be left

    def written(self) -> Tree:
        """Return what is there as long as the power does not fail."""
        return _left(self._root, (lambda: True, lambda written, on_disk: written))

    def flushed(self, *path: str) -> set[str]:
        """Return the names in a folder that the program has flushed to disk; none if there is no such folder."""
        folder = self._root
        for name in path:
            found = folder.entries.get(name)
            if not isinstance(found, _Folder):
                return set()
            folder = found
        return set(folder.on_disk)

    def after_power_loss(self, chance: random.Random, count: int) -> Iterator[Tree]:
        """Give what may be there after the power fails now: the worst cases, and some at random."""
        yield _left(self._root, (lambda: False, lambda written, on_disk: on_disk))
        yield _left(self._root, (lambda: True, lambda written, on_disk: on_disk))
        yield _left(self._root, (lambda: True, lambda written, on_disk: bytes(len(written))))
        for _ in range(count):
            yield _left(self._root, (lambda: chance.random() < 0.5, lambda *both: _some_of(chance, *both)))


def _some_of(chance: random.Random, written: bytes, on_disk: bytes) -> bytes:
    return chance.choice((written, on_disk, bytes(len(written)), written[: chance.randrange(len(written) + 1)]))


def _read(path: Path) -> _Folder:
    entries: dict[str, _File | _Folder] = {}
    for found in path.iterdir():
        data = b"" if found.is_dir() else found.read_bytes()
        entries[found.name] = _read(found) if found.is_dir() else _File(bytearray(data), data)
    return _Folder(entries, dict(entries))


def _left(folder: _Folder, fate: Fate) -> Tree:
    is_done, content = fate
    entries = dict(folder.on_disk)
    for names in folder.pending:
        if is_done():
            _apply(entries, names)
    left: Tree = {}
    for name, node in entries.items():
        if isinstance(node, _Folder):
            left[name] = _left(node, fate)
        else:
            is_sure = bytes(node.written) == node.on_disk
            left[name] = node.on_disk if is_sure else content(bytes(node.written), node.on_disk)
    return left


def write_tree(tree: Tree, path: Path) -> Path:
    """Write files and folders in place of what is there."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    for name, content in tree.items():
        if isinstance(content, dict):
            write_tree(content, path / name)
        else:
            (path / name).write_bytes(content)
    return path
