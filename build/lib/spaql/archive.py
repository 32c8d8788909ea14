"""Arrays with a header in one .npz file: written whole or not at all, read without running anything (no pickle)."""

import errno
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from spaql.compiling import records

PREFIX, SUFFIX = ".spaql-", ".tmp"  # of files being written

ABANDONED = 24 * 3600  # seconds after which such a file is nobody's any more


def write(path: Path, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a file that replaces an older one only when complete, whatever happens meanwhile."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **packed)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path, form: str, version: int) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file of some format; raise ValueError if it is not such a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"]
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is how an archive that points outside itself shows
            raise
        raise ValueError(f"{path} is damaged or not a {form} ({error})") from error
    except Exception as error:  # there is no end to what a damaged archive makes its readers raise
        reason = "it is no .npz archive" if "pickle" in str(error) else error
        raise ValueError(f"{path} is damaged or not a {form} ({reason})") from error
    if found[0] != form:
        raise ValueError(f"{path} is not a {form}, but a {found[0]}")
    if found[1] != version:
        raise ValueError(f"{path} has format version {found[1]}, this package reads version {version}: "
                         "use the version of spaql that wrote it")  # fmt: skip
    return header, arrays


def check_array(arrays: dict[str, np.ndarray], name: str, dtype: Any, length: int | None = None) -> np.ndarray:
    """Return an array of a file if it has the type and length it should have."""
    array = arrays[name]
    if array.dtype != dtype or (length is not None and len(array) != length):
        raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}, expected {dtype}")
    # Archives forget whether records are aligned; compiled code takes arrays with and without as different types.
    found = np.empty(array.shape, dtype) if np.dtype(dtype).names is None else records(len(array), dtype)
    found[...] = array
    return found


def sweep(folder: Path) -> None:
    """Remove what killed processes have left half-written."""
    for file in Path(folder).rglob(f"{PREFIX}*{SUFFIX}"):
        try:
            if time.time() - file.stat().st_mtime > ABANDONED:
                file.unlink()
        except FileNotFoundError:  # another process was faster
            pass
