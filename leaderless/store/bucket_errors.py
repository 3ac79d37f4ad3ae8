"""What the errors of obstore mean, in the terms of the store port.

S3 answers 409 when a conditional write meets another one under way, and obstore calls that "exists already":
here it is `OutcomeUnknown`, as every 5xx, 429, and an answer that is lost or makes no sense. Azure answers 409,
too, when a creation meets what exists; the code in the answer tells the two apart.
"""

import re

from obstore import exceptions

from leaderless.store.options import without_secrets
from leaderless.store.port import Conflict, OutcomeUnknown, Refused, StoreError

_STATUS = re.compile(r"status code: (\d{3})")
NO_BUCKET = "the bucket does not exist; make it first, or correct its name"
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_REFUSED = (400, 401, 403, 404, 405, 411, 413, 414, 501)
_TOO_SLOW = "RequestTimeout"  # S3's code for a request that came in too slowly; its status is 400
# Without keys in the environment obstore asks the machine for those of its role, which only a cloud's has.
_NO_KEYS = re.compile(r"//169\.254\.169\.254/|Missing (Secret)?Access|Account must be specified")
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (~/.aws is not read)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, the path of a key file",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NO_PATH = "Could not parse path"  # obstore takes no such key, and asks nothing


def is_of_obstore(error: BaseException) -> bool:
    """Whether an error came from obstore, or is a panic in it, which is no `Exception`."""
    known = isinstance(error, exceptions.BaseError | ValueError)
    return known or type(error).__name__ == "PanicException"


def classified(url: str, error: BaseException) -> StoreError:
    """What an error of obstore means: `Conflict`, `Refused` or `OutcomeUnknown`.

    A `ValueError` is a refusal only where obstore says that it has asked nothing.
    """
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else 0
    text = f"{url}: {first_line(error)}"
    if _NO_BUCKET.search(str(error)):
        return Refused(NO_BUCKET)
    if status == 412 or (isinstance(error, exceptions.PreconditionError) and status != 409):
        return Conflict(text)
    exists = isinstance(error, exceptions.AlreadyExistsError)
    if exists and (status != 409 or "BlobAlreadyExists" in str(error)):
        return Conflict(text)
    if status in (401, 403):
        return Refused(
            f"{text}. Check the access key, its secret, and what it may do in the bucket"
        )
    unasked = isinstance(error, UnicodeEncodeError) or _NO_PATH in str(error)
    is_listed = isinstance(
        error, exceptions.InvalidPathError
    )  # somebody's key with an empty segment
    if unasked or is_listed or (status in _REFUSED and _TOO_SLOW not in str(error)):
        return Refused(text)
    return OutcomeUnknown(text)


def missing_keys(url: str, error: BaseException) -> str:
    """Which variables to set, if an error of obstore says that it found no credentials; else an empty text."""
    if not _NO_KEYS.search(str(error)):
        return ""
    scheme = url.partition(":")[0]
    return f"{url}: no credentials were found. Set {_KEYS[scheme]}, or run on a machine whose role has them"


def require_bucket(error: Exception) -> None:
    """Raise `Refused` if an error says that the whole bucket is missing."""
    if _NO_BUCKET.search(str(error)):
        raise Refused(NO_BUCKET) from error


def first_line(error: BaseException) -> str:
    """What an error says, without secrets and without obstore's dump of its own structures."""
    text = without_secrets(str(error)).partition("Debug source")[0]
    return " ".join(text.split())[:400]
