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


def checked(name: str) -> str:
    """The value of `--store-server`, if it is written right (else `ValueError` says what to do)."""
    parts = urlsplit(name)
    if name not in (MOTO, ETCD, SQLITE) and not (parts.scheme and parts.netloc):
        started = ", ".join((MOTO, ETCD, SQLITE))
        raise ValueError(
            f"{name!r}: write {started}, or a URL such as s3://BUCKET or etcd://HOST:PORT."
        )
    if "@" in parts.netloc:
        raise ValueError(
            "what stands before '@' belongs into the environment: results keep the command line."
        )
    return name


def missing(name: str | None) -> str:
    """What this machine lacks to start the store that `--store-server` names, and what brings it; else ''."""
    if name == ETCD and not shutil.which("etcd"):
        return "The command etcd is missing: on Debian, apt-get install etcd-server."
    if name == MOTO and not all(map(find_spec, ("moto", "flask_cors"))):
        return "moto is not installed: pip install 'moto[s3]' flask-cors."
    return ""
