"""What `--store-server` may name: a server that the run starts, a file, or a store that is there already.

moto       a server of S3 in Python, started for the run; `pip install 'moto[s3]' flask-cors`
etcd       an etcd of one member, started for the run; the command must be installed
sqlite     a file in the folder of the run
URL        what is there: s3://BUCKET/PREFIX (its endpoint in AWS_ENDPOINT_URL), etcd://HOST:PORT/PREFIX, or any
           other that the nodes know
"""

import shutil
from importlib.util import find_spec
from urllib.parse import urlsplit

MOTO, ETCD, SQLITE = "moto", "etcd", "sqlite"


def complaint(name: str) -> str | None:
    """What is wrong with a value of `--store-server`, and what to do; None for a right one."""
    if name in (MOTO, ETCD):
        return _not_installed(name)
    if name == SQLITE:
        return None
    parts = urlsplit(name)
    if not parts.scheme or not parts.netloc:
        return f"{name!r}: write {MOTO}, {ETCD}, {SQLITE}, or a URL such as s3://BUCKET or etcd://HOST:PORT."
    if "@" in parts.netloc:
        return "what stands before '@' belongs into the environment: results keep the command line."
    return None


def _not_installed(name: str) -> str | None:
    if name == ETCD and not shutil.which("etcd"):
        return "the command etcd is missing: on Debian, apt-get install etcd-server."
    if name == MOTO:
        missing = [each for each in ("moto", "flask_cors") if not find_spec(each)]
        return "moto is not installed: pip install 'moto[s3]' flask-cors." if missing else None
    return None
