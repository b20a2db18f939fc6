"""What git ignores is not built, and packages with key material or tokens are no candidates."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.secret_scan import exclude_git_ignored, find_secrets_in_packages
from mcpfactory_pipeline.channels import candidate
from mcpfactory_pipeline.channels.candidate import build_candidate
from tests.subtest_table import parametrize_subtests

KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq1" * 8 + "\n-----END RSA PRIVATE KEY-----\n"
LEAKS = {
    "prod.pem": KEY,
    "api/prod.pem": KEY,
    "api/__init__.py": f'KEY = """{KEY}"""',
    "api/.netrc": "machine a login b password c",
    "pkg/key.py": f'KEY = """{KEY}"""',
    "pkg/account.json": '{"private_key": "' + KEY.replace("\n", "\\n") + '"}',
    "pkg/pgp.asc": KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").replace(
        "-----\n", "-----\nVersion: GnuPG v2.0.22 (x)\n\n", 1
    ),
    "pkg/locked.pem": KEY.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n", 1),
    ".netrc": "machine a login b password c",
    "pkg/.pypirc": "[pypi]",
    "id_ed25519": "x",
    ".env.production": "A=b",
    "pkg/a.py": f"TOKEN = 'ghp_{'aB3' * 12}'",
    "pkg/b.py": f"TOKEN = 'glpat-{'aB3d' * 5}'",
    "pkg/c.json": f'{{"key": "AKIA{"QRST" * 4}"}}',
    "pkg/d.py": f"'sk_live_{'aB3d' * 6}'",
    "pkg/e.py": f"'xoxb-123456789012-{'aB3d' * 6}'",
    "pkg/f.py": f"'github_pat_{'aB3' * 20}'",
    "pkg/g.py": f"'npm_{'aB3d' * 9}'",
    "pkg/h.py": f"'pypi-AgEI{'aB3d' * 15}'",
    "pkg/i.py": f"'sk-ant-{'aB3d' * 9}'",
    "pkg/j.py": f"'sk-proj-{'aB3d' * 12}'",
}
HONEST = {
    "pkg/__init__.py": "HEADER = '-----BEGIN PRIVATE KEY-----'\nFIELD = 'ghp_…'\n",
    "docs/aws.md": "AKIAIOSFODNN7EXAMPLE is the example of the documentation",
    ".env.example": "A=",
    "pkg/public.pem": "-----BEGIN PUBLIC KEY-----\n" + "MIIB" * 40 + "\n-----END PUBLIC KEY-----\n",
    "pkg/hash.txt": "ab" * 400,
    "pkg/placeholder.py": f"'ghp_{'x' * 36}'",
}


def packages(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    wheel, sdist = folder / "p-1-py3-none-any.whl", folder / "p-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive, tarfile.open(sdist, "w:gz") as tar:
        for name, text in files.items():
            archive.writestr(name, text)
            entry = tarfile.TarInfo(f"p-1/{name}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return wheel, sdist


@parametrize_subtests("name", LEAKS)
def test_a_secret_is_found_in_wheel_and_source_distribution_and_not_shown(tmp_path, name):
    found = list(find_secrets_in_packages(packages(tmp_path, HONEST | {name: LEAKS[name]})))
    assert [words.split(" in ")[0] for words in found] == [name, f"p-1/{name}"]
    assert not any("MIIE" in words or "aB3" in words or "QRST" in words for words in found)


def test_what_only_speaks_of_keys_is_none(tmp_path):
    assert list(find_secrets_in_packages(packages(tmp_path, HONEST))) == []


def test_what_git_ignores_is_left_out_and_without_git_nothing_is(tmp_path):
    for name in ("a.py", "prod.pem", "secrets/token.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text("*.pem\nsecrets/\n")
    files = ["a.py", "prod.pem", "secrets/token.txt"]
    assert exclude_git_ignored(tmp_path, files) == files
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert exclude_git_ignored(tmp_path, files) == ["a.py"]


def test_packages_with_a_secret_are_no_candidate(tmp_path, monkeypatch):
    made = packages(tmp_path, {"prod.pem": KEY})
    monkeypatch.setattr(candidate, "build_packages", lambda *_arguments, **_options: made)
    with pytest.raises(ToolRejectedInputError, match=r"contain secrets: prod\.pem"):
        build_candidate(tmp_path, tmp_path)


def test_examples_of_an_api_document_are_public_wherever_they_stand(tmp_path):
    example = f"xoxb-123456789012-{'aB3d' * 6}"
    files = {
        "api/parts/openapi.json": f'{{"example": "{example}"}}',
        "src/p/_generated/api.py": KEY,
        "tests/cases.json": example,
    }
    assert [words for words in find_secrets_in_packages(packages(tmp_path, files)) if "whl" not in words] == []
    other = {**files, "src/p/server.py": f"xoxb-999999999999-{'aB3d' * 6}"}
    found = [words for words in find_secrets_in_packages(packages(tmp_path, other)) if "tar" in words]
    assert [words.split(" in ")[0] for words in found] == ["p-1/src/p/server.py"]
