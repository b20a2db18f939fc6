"""Packages as bytes, written by tests without a build or an index."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping


def wheel_name(name: str, version: str) -> str:
    """Return the file name of a pure wheel."""
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def wheel(name: str, version: str, files: Mapping[str, str], program: str = "", needs: tuple[str, ...] = ()) -> bytes:
    """Return a wheel with these files; `program` is a line of its console scripts."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {one}\n" for one in needs
    )
    members = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{program}\n" if program else "",
    }
    rows = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}\n"
        for path, text in members.items()
    )
    return zipped({**members, f"{info}/RECORD": f"{rows}{info}/RECORD,,\n"})


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Return an archive whose bytes depend only on its files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return out.getvalue()


def tarball(files: Mapping[str, str | bytes], top: str = "package") -> bytes:
    """Return a tarball with all files in one folder, for npm `package/`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()
