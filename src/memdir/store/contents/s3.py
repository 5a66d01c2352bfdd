"""Large contents in a bucket of an S3-compatible store, through boto3 (`pip install 'memdir[s3]'`).

Keys, region and endpoint come from where every AWS tool looks for them (environment, `~/.aws`, instance role);
`MEMDIR_S3_ENDPOINT_URL` names another store than Amazon's for memdir alone. Bytes are guarded by Content-MD5 on the way in,
which every S3-compatible store checks, and by the SHA-256 of the content whenever it is read to its end.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from memdir.core.errors import NotFoundError, StorageError, UsageError
from memdir.core.limits import MIB
from memdir.store.contents.backends import Source, Stored, is_place

ENV_ENDPOINT: Final = "MEMDIR_S3_ENDPOINT_URL"
PART_BYTES: Final = 16 * MIB
"""Contents above this go up in parts of this size: what is in memory at a time, and what a lost connection repeats."""
CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 30
ATTEMPTS: Final = 4
CONNECTIONS_MAX: Final = 32
DELETE_MAX: Final = 1000
"""Objects of one DeleteObjects call: the protocol's bound."""
_GONE: Final = ("NoSuchKey", "404", "NotFound")
_DENIED: Final = ("AccessDenied", "403", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken")


class S3Contents:
    """Objects `<prefix>/ab/<hash>.<id>` of one bucket."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    @classmethod
    def connect(cls, bucket: str, prefix: str) -> S3Contents:
        """A client for the bucket, and a look that it is there. UsageError without boto3 or keys; StorageError."""
        try:
            import boto3
            from botocore.config import Config
        except ImportError:
            raise UsageError("contents in S3 need boto3", hint="pip install 'memdir[s3]'") from None
        endpoint = os.environ.get(ENV_ENDPOINT) or None
        # Checksums beyond those of the protocol's first day are asked for by no part of this: many stores lack them.
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS_MAX,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path"} if endpoint else {},
        )
        with _explained(f"s3://{bucket}"):
            region = None if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") else _region(endpoint)
            client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name=region, config=config)
            client.head_bucket(Bucket=bucket)
        return cls(client, bucket, prefix)

    @property
    def name(self) -> str:
        """The URL."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def _key(self, place: str) -> str:
        assert is_place(place), place
        return self._prefix + place

    def put(self, place: str, file: Path) -> None:
        """One request, or one for each part; the object is there as a whole or not at all."""
        with _explained(self.name), file.open("rb") as source:
            if os.fstat(source.fileno()).st_size <= PART_BYTES:
                body = source.read()
                self._client.put_object(Bucket=self._bucket, Key=self._key(place), Body=body, ContentMD5=_md5(body))
            else:
                self._put_parts(self._key(place), source)

    def _put_parts(self, key: str, source: IO[bytes]) -> None:
        target = {"Bucket": self._bucket, "Key": key}
        upload = target | {"UploadId": self._client.create_multipart_upload(**target)["UploadId"]}
        parts: list[dict[str, Any]] = []
        try:
            while body := source.read(PART_BYTES):
                number = len(parts) + 1
                answer = self._client.upload_part(**upload, PartNumber=number, Body=body, ContentMD5=_md5(body))
                parts.append({"PartNumber": number, "ETag": answer["ETag"]})
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            self._client.abort_multipart_upload(**upload)
            raise

    def open(self, place: str) -> tuple[Source, int]:
        """The answer's body, read as it comes."""
        with _explained(self.name):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._key(place))
        return _Body(answer["Body"], self.name), int(answer["ContentLength"])

    def size(self, place: str) -> int | None:
        """From the object's headers."""
        try:
            with _explained(self.name):
                return int(self._client.head_object(Bucket=self._bucket, Key=self._key(place))["ContentLength"])
        except NotFoundError:
            return None

    def delete(self, places: Sequence[str]) -> None:
        """One at a time for a few, else as many in one request as the protocol takes."""
        with _explained(self.name):
            if len(places) <= 2:
                for place in places:
                    self._client.delete_object(Bucket=self._bucket, Key=self._key(place))
                return
            for first in range(0, len(places), DELETE_MAX):
                keys = [{"Key": self._key(place)} for place in places[first : first + DELETE_MAX]]
                answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
                if answer.get("Errors"):
                    refused = answer["Errors"][0]
                    raise StorageError(f"{self.name} does not delete {refused.get('Key')}: {refused.get('Message')}")

    def all(self) -> Iterator[Stored]:
        """Every object below the prefix, a page of 1,000 at a time."""
        with _explained(self.name):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix):
                for item in page.get("Contents", ()):
                    place = item["Key"][len(self._prefix) :]
                    if is_place(place):
                        yield Stored(
                            place=place, size_bytes=item["Size"], modified_ms=int(item["LastModified"].timestamp() * 1000)
                        )

    def abandon(self, *, before_ms: int) -> int:
        """Parts of uploads that never ended: no listing of objects shows them, and they cost money."""
        count = 0
        with _explained(self.name):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=self._prefix)
            for page in pages:
                for item in page.get("Uploads", ()):
                    if is_place(item["Key"][len(self._prefix) :]) and item["Initiated"].timestamp() * 1000 < before_ms:
                        self._client.abort_multipart_upload(Bucket=self._bucket, Key=item["Key"], UploadId=item["UploadId"])
                        count += 1
        return count

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class _Body:
    """The body of an answer, with errors of this house."""

    def __init__(self, body: Any, name: str) -> None:
        self._body = body
        self._name = name

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes."""
        with _explained(self._name):
            piece: bytes = self._body.read(size)
            return piece

    def close(self) -> None:
        """Give the connection back."""
        self._body.close()


def _region(endpoint: str | None) -> str | None:
    """Stores other than Amazon's do not care, but a signature needs some region; for Amazon's the configuration says it."""
    return "us-east-1" if endpoint else None


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """What boto3 raises, as errors of this house."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except NoCredentialsError:
        raise UsageError(
            f"there are no keys for {name}", hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"
        ) from None
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code == "NoSuchBucket" or (code in _GONE and error.operation_name == "HeadBucket"):
            raise StorageError(f"there is no bucket for {name}", hint="make it first: memdir makes none") from error
        if code in _GONE:
            raise NotFoundError(f"{name} does not hold it") from error
        hint = "check the keys and what they may do" if code in _DENIED else "it is tried again; `memdir server check` shows it"
        raise StorageError(f"{name} refuses: {error}", hint=hint) from error
    except (BotoCoreError, HTTPError, ConnectionError) as error:
        hint = f"check the network and {ENV_ENDPOINT}; it is tried again"
        raise StorageError(f"{name} cannot be reached: {error}", hint=hint) from error
