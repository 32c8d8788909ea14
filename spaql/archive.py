"""Arrays with a header in one .npz file: written whole or not at all, read without running anything (no pickle)."""

import errno
import hashlib
import json
import math
import os
import secrets
import time
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields

from spaql.checks import shown
from spaql.compiling import records
from spaql.interrupts import deferred_interrupts

PREFIX, SUFFIX = ".spaql-", ".tmp"  # of files being written

LARGEST = 2**31  # bytes an archive may unpack to
SMALL, RATIO = 2**26, 100  # bytes that any may unpack to; a larger one at most to so many times its own size
ABANDONED = 24 * 3600  # seconds after which such a file is nobody's any more


def write(path: Path, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a file that replaces an older one only when complete, whatever happens meanwhile.

    A link is followed, and the file gets the mode that the user's umask asks for, as with other programs.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a folder or a device, not a file that could be replaced: give another name")
    arrays = {name: repack_fields(array) for name, array in arrays.items()}  # room between records is not written
    header = header | {"checksum": checksum(arrays)}
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    temporary = target.with_name(f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}")
    with deferred_interrupts() as check_interrupts:  # which would leave the file half-written
        try:
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
                np.savez_compressed(file, **packed)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            check_interrupts()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def checksum(arrays: dict[str, np.ndarray]) -> str:
    """Return a hash of arrays and their names."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype.descr} {arrays[name].shape}".encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def read(
    path: Path, form: str, version: int, expected: Collection[str] | None = None
) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file of some format; raise ValueError if it is not such a file.

    Where it is said which arrays are expected, a file with others is refused before they are unpacked, and so is one
    without a checksum, which the oldest files of the paper's runs do not have.
    """
    try:
        with zipfile.ZipFile(path) as file:
            entries = check_entries(path, file, expected)
            arrays = {name: read_entry(file, entry) for name, entry in entries.items()}
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"]
        if header.get("checksum", checksum(arrays) if expected is None else None) != checksum(arrays):
            raise ValueError("its checksum does not match" if "checksum" in header else "it has no checksum")
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is how an archive that points outside itself shows
            raise
        raise ValueError(f"{path} is damaged or not a {form} ({error})") from error
    except Exception as error:  # there is no end to what a damaged archive makes its readers raise
        reason = "it is no .npz archive" if isinstance(error, zipfile.BadZipFile) else error
        raise ValueError(f"{path} is damaged or not a {form} ({reason})") from error
    if found[0] != form:
        raise ValueError(f"{path} is not a {form}, but a {shown(found[0])}")
    if found[1] != version:
        raise ValueError(f"{path} has format version {shown(found[1])}, this package reads version {version}: "
                         "use the version of spaql that wrote it")  # fmt: skip
    return header, arrays


def check_entries(path: Path, file: zipfile.ZipFile, expected: Collection[str] | None) -> dict[str, zipfile.ZipInfo]:
    """Return an archive's entries by the names of their arrays, if it can be unpacked without harm.

    A small file can hold a lot of zeros: nothing is unpacked before its directory says how much there is.
    """
    entries = {entry.filename.removesuffix(".npy"): entry for entry in file.infolist()}
    if len(entries) < len(file.infolist()):
        raise ValueError("it has two arrays of one name")
    if expected is not None and (unknown := entries.keys() - set(expected) - {"header"}):
        raise ValueError(f"it has an array {shown(min(unknown))}, which is not expected")
    size, limit = sum(entry.file_size for entry in entries.values()), max(SMALL, RATIO * path.stat().st_size)
    if size > min(limit, LARGEST):
        raise ValueError(f"it would unpack to {size:,} bytes, more than {min(limit, LARGEST):,}")
    return entries


def read_entry(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of an archive, if the entry is as long as it says of itself."""
    with file.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never read")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != entry.file_size - stream.tell():
            raise ValueError(f"its array {entry.filename} is not as long as it says")
        read = np.frombuffer(stream.read(), dtype, math.prod(shape))
    return read.reshape(shape, order="F" if fortran else "C").copy()


def check_array(arrays: dict[str, np.ndarray], name: str, dtype: Any, length: int | None = None) -> np.ndarray:
    """Return an array of a file if it has the type and length it should have."""
    array, expected = arrays[name], repack_fields(np.dtype(dtype))
    if array.dtype != expected or (length is not None and len(array) != length):
        raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}, expected {expected}")
    # Archives forget how records are aligned and spaced; compiled code takes arrays of another layout as another type.
    found = np.empty(array.shape, dtype) if np.dtype(dtype).names is None else records(len(array), dtype)
    found[...] = array
    return found


def sweep(folder: Path) -> None:
    """Remove what killed processes have left half-written."""
    for file in Path(folder).rglob(f"{PREFIX}*{SUFFIX}"):
        try:
            if time.time() - file.stat().st_mtime > ABANDONED:
                file.unlink()
        except OSError:  # another process was faster, or the folder is not ours to change: a stale file does no harm
            continue
