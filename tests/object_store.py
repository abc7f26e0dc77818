"""An object store on loopback that speaks S3. It keeps its objects in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

__all__ = ["serve_bucket"]

#: What clients of S3 read: any key is good, and nobody else is asked for one.
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
}


@contextmanager
def serve_bucket() -> Iterator[str]:
    """Serve an empty bucket. Give its URL, with `{}` where the name of a folder stands."""
    server_module = pytest.importorskip("moto.server", reason="no S3 server is installed; make test-cluster does that")
    fs = pytest.importorskip("pyarrow.fs")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        with patch.dict(os.environ, _ENVIRONMENT):
            query = f"endpoint_override=http://127.0.0.1:{port}&allow_bucket_creation=true"
            files, path = fs.FileSystem.from_uri(f"s3://bucket?{query}")
            files.create_dir(path)
            yield f"s3://bucket/{{}}?{query}"
    finally:
        server.stop()
