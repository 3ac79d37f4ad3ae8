"""Which store a URL names (`leaderless.store.urls`), and the errors of a URL that names none."""

import sqlite3
import sys
from pathlib import Path

import pytest

from leaderless.store.port import Refused
from leaderless.store.urls import open_store, without_secrets


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", "names no store"),
        ("ftp://host", "names no store"),
        ("sqlite:", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///no/such/folder/file.db", "make the folder"),
        ("s3://", "write s3://BUCKET/PREFIX"),
        ("s3://key:secret@bucket", "without keys"),
        ("s3://bucket/a/../b", "is no prefix"),
        ("s3://bucket/a//b", "is no prefix"),
        ("etcd://", "write etcd://HOST:PORT"),
    ],
)
def test_what_names_no_store_is_refused(url: str, text: str) -> None:
    with pytest.raises(Refused, match=text) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("etcd://user:secret@host:2379/p", "etcd://host:2379/p"),
        ("s3://bucket/p", "s3://bucket/p"),
        ("sqlite:///a@b", "sqlite:///a@b"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_prefix_is_part_of_the_url() -> None:
    assert open_store("s3://bucket/a/b/").url == "s3://bucket/a/b"


@pytest.mark.parametrize(
    ("package", "url", "extra"), [("obstore", "s3://b", "s3"), ("httpx", "etcd://h", "etcd")]
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, url: str, extra: str
) -> None:
    module = {"s3": "leaderless.store.objects", "etcd": "leaderless.store.etcd"}[extra]
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Refused, match=rf"pip install 'leaderless\[{extra}\]'"):
        open_store(url)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "other.db"
    text.write_text("no database, but long enough to be looked at" * 10)
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE objects (x)")
    other.close()
    with pytest.raises(Refused, match="not a database"):
        open_store(f"sqlite:///{text}")
    with pytest.raises(Refused, match="of another program"):
        open_store(f"sqlite:///{database}")
    with sqlite3.connect(database) as untouched:
        assert untouched.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    untouched.close()
