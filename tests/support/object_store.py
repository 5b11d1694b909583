"""A server of S3 on this machine, in a process of its own, for tests of storage by URL."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

_SERVE = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable(logging.CRITICAL)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
_KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}


@contextmanager
def s3_server():
    """Provide the environment by which s3fs finds a server with the bucket ``nation``."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **_KEYS},
    ) as process:
        port = int(process.stdout.readline())
        url = f"http://127.0.0.1:{port}"
        bucket = urllib.request.Request(f"{url}/nation", method="PUT")  # noqa: S310 - our own server
        for _ in range(100):
            try:
                urllib.request.urlopen(bucket, timeout=10).close()  # noqa: S310 - our own server
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        try:
            yield {**_KEYS, "AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"}
        finally:
            process.kill()
