"""moto's server, with conditional writes that are atomic: `python bench/stores/moto_server.py -p PORT`.

moto (5.2) answers requests in threads. It compares the ETag of `If-Match` first and writes afterwards, without
a lock. So two conditional writes on the same ETag can both succeed, and one of them is lost. S3 promises that
only one does. Here each write waits until the one before it has ended.
"""

from functools import wraps
from threading import Lock
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main


def serve(arguments: list[str] | None = None) -> None:
    """Serve until a signal ends it. `arguments`: those of moto's own server; None: of this process."""
    lock, put = Lock(), S3Response.put_object

    @wraps(put)
    def put_alone(*values: Any, **named: Any) -> Any:
        with lock:
            return put(*values, **named)

    S3Response.put_object = put_alone  # type: ignore[method-assign]
    main(arguments)


if __name__ == "__main__":
    serve()
