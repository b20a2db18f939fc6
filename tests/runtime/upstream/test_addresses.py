import pytest

from mcpfactory_runtime.urls import is_public, private_target_kind
from tests.subtest_table import parametrize_subtests


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822", "2002:5db8:d822::1"]
)
def test_the_public_internet_is_public(address: str) -> None:
    assert is_public(address)


PRIVATE = (
    "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::",
    "2001:0:7f00:1::", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1", "100::1",
    "192.0.0.192", "192.88.99.1", "168.63.129.16", "3fff::1", "5f00::1", "64:ff9b:1::a9fe:a9fe", "2001:1::1", "100:0:0:1::1",
    "2001:470:1::5efe:7f00:1", "2001:470:1::200:5efe:a00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
)  # fmt: skip


@parametrize_subtests("address", PRIVATE)
def test_loopback_private_and_disguised_addresses_are_not(address: str) -> None:
    assert not is_public(address)


@parametrize_subtests(
    "url, words",
    [
        ("http://127.0.0.1:8000/v1", "this machine"),
        ("http://localhost", "this machine"),
        ("https://api.localhost./x", "this machine"),
        ("http://[::1]:8000", "this machine"),
        ("http://0.0.0.0:8000", "this machine"),
        ("http://10.1.2.3", "a private network"),
        ("http://[fd00::1]", "a private network"),
        ("http://169.254.169.254/latest", "a private network"),
        ("http://api:8080", "a private network"),
        ("http://printer.local", "a private network"),
        ("https://api.corp.internal", "a private network"),
        ("https://api.example.com", ""),
        ("https://8.8.8.8", ""),
        ("ftp://127.0.0.1", ""),
        ("/v1", ""),
        ("", ""),
    ],
)
def test_what_a_url_leads_to_is_told_by_its_name(url: str, words: str) -> None:
    assert private_target_kind(url) == words
