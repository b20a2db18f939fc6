"""The canonical form of a wheel of ours, which is one package: its bytes follow from the files that an installer takes from it.

Whoever has the files has the wheel. What installers add is left out, files are stored (compression differs between the
zlibs that Pythons are built with), and `RECORD` is written anew in the order of the paths (PEP 427, PEP 376).
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.archives import zip_bytes

__all__ = ["canonical_name", "canonical_wheel", "digest", "is_wheel_file", "read_wheel"]

# What a build backend writes beside the package. Installers add INSTALLER, REQUESTED, direct_url.json and files of their own.
_BUILT: Final = re.compile(r"METADATA|WHEEL|entry_points\.txt|(licenses|license_files|sboms)/.+")


def is_wheel_file(path: str) -> bool:
    """Whether a path of `RECORD` is a file of the wheel, and not one that an installer made: programs, caches, notes."""
    top, _, rest = path.partition("/")
    if top.endswith(".dist-info"):
        return _BUILT.fullmatch(rest) is not None
    return top.startswith("mcpfactory") and "__pycache__/" not in rest


def digest(data: bytes) -> str:
    """Return the hash of a file as `RECORD` has it."""
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()}"


def canonical_wheel(files: Mapping[str, bytes]) -> bytes:
    """Return the wheel that holds these files, which are a package and its `.dist-info` without `RECORD`."""
    record = f"{_info(files)}/RECORD"
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows((path, digest(files[path]), len(files[path])) for path in sorted(files))
    rows.writerow((record, "", ""))
    return zip_bytes({**files, record: text.getvalue().encode()})


def canonical_name(files: Mapping[str, bytes]) -> str:
    """Return the file name of the wheel that holds these files: distribution, version and tag."""
    info = _info(files)
    tag = next(line[5:] for line in files[f"{info}/WHEEL"].decode().splitlines() if line.startswith("Tag: "))
    return f"{info.removesuffix('.dist-info')}-{tag}.whl"


def read_wheel(wheel: Path) -> dict[str, bytes]:
    """Return the files that `canonical_wheel` makes the wheel of again."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if is_wheel_file(name)}


def _info(files: Mapping[str, bytes]) -> str:
    return next(path.partition("/")[0] for path in files if path.endswith(".dist-info/WHEEL"))
