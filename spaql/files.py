"""Files: arrays with a header in one .npz file, and saved agents.

Files are written whole or not at all.  Reading them runs nothing (no pickle, no import), unpacks no more than is sane,
and checks what compiled code relies on, so that a damaged or forged file neither crashes nor hangs the process.
"""

import json
import os
import secrets
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.lib.recfunctions import repack_fields

from spaql.checks import shown
from spaql.interrupts import deferred_interrupts

FORMAT, VERSION = "saved agent", 1
LARGEST = 2**31  # bytes an archive may unpack to
FINITE = sys.float_info.max
HEADER = 10**6  # bytes of a header, which is read as JSON
SMALL, RATIO = 2**26, 100  # bytes that any may unpack to; a larger one at most to so many times its own size


def target_of(path: str | os.PathLike) -> Path:
    """Return the file that a path stands for, links followed, or say why it cannot be written."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent} to write {target.name} to")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a folder or a device, not a file that could be replaced: give another name")
    return target


def write(path: str | os.PathLike, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a file that replaces an older one only when complete."""
    target = target_of(path)
    arrays = {name: repack_fields(array) for name, array in arrays.items()}  # without padding between records
    header = {"format": FORMAT, "version": VERSION} | header
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    temporary = target.with_name(f".spaql-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with deferred_interrupts() as check_interrupts:
        try:
            with temporary.open("xb") as file:
                np.savez_compressed(file, **packed)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            check_interrupts()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def read(path: str | os.PathLike, algorithm: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of an agent of some class; raise ValueError if it is not such a file."""
    try:
        with zipfile.ZipFile(path) as file:  # nothing is unpacked before its directory says how much there is
            size = sum(entry.file_size for entry in file.infolist())
            if file.getinfo("header.npy").file_size > HEADER:
                raise ValueError(f"its header has more than {HEADER:,} bytes")
        if size > min(LARGEST, max(SMALL, RATIO * Path(path).stat().st_size)):
            raise ValueError(f"it would unpack to {size:,} bytes")
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"], str(header["algorithm"])[:40], header["env_id"]
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # there is no end to what a damaged archive makes its readers raise
        reason = "it is no .npz archive" if isinstance(error, zipfile.BadZipFile) else error
        raise ValueError(f"{path} is damaged or not a {FORMAT} ({reason})") from error
    if found[:2] != (FORMAT, VERSION):
        raise ValueError(f"{path} is a {shown(found[0])} of version {shown(found[1])}, this package reads a {FORMAT} "
                         f"of version {VERSION}: use the version of spaql that wrote it")  # fmt: skip
    if found[2] != algorithm:
        raise ValueError(f"{path} holds an agent of class {found[2]}, not {algorithm}: load it with {found[2]}.load")
    return header, arrays


def check_array(
    arrays: dict[str, np.ndarray], name: str, dtype: Any, shape: tuple, low: Any = -FINITE, high: Any = FINITE
) -> np.ndarray:
    """Return an array of a file if it has the type and the shape it should have, and numbers from `low` to `high`."""
    array, expected = arrays[name], repack_fields(np.dtype(dtype))
    if array.dtype != expected or array.shape != shape:
        raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}, expected {expected} of {shape}")
    if expected.names is None and not np.all((array >= low) & (array <= high)):
        raise ValueError(f"its array {name} holds what no learning gives")
    # Archives forget how records are aligned and spaced; compiled code takes arrays of another layout as another type.
    found = np.empty(shape, dtype)
    found[...] = array
    return found


def check_env_id(env_id: Any, path: str | os.PathLike) -> str:
    """Return the id of a file's environment, if making it runs nothing but what this process has registered."""
    if not isinstance(env_id, str) or env_id not in gym.registry:
        made_for = "no id" if env_id is None else f"{shown(env_id)}, which is not registered here"
        raise ValueError(f"the agent in {path} was made for {made_for}: import what registers its environment, or give "
                         "load() such an environment, load(path, env=...)")  # fmt: skip
    return env_id
