"""Attack: a document whose serialisation writes past the end of a buffer, as orjson 3.12.0 and 3.13.0 do.

Any user who may patch a custom resource ended the process, or worse, with one request. Each document is written in a
process of its own with the checks of the C library's allocator where it has them, because a small overflow is silent
without them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CHECKER = Path("/lib/x86_64-linux-gnu/libc_malloc_debug.so.0")
_WRITE = """
import orjson
texts, numbers = ["w" * 100] * 5000, list(range(3000))
for count in range({first}, {last}, 20):
    for document in ({documents}):
        for _ in range(2):
            assert orjson.loads(orjson.dumps(document)) == document
"""


@pytest.mark.parametrize(
    "documents",
    [
        "[[texts, *texts[:count]], *numbers],",
        "[texts, texts[:count], numbers], {'a': [texts, texts[:count]], 'b': numbers}",
    ],
)
def test_no_document_is_written_past_the_end_of_its_buffer(documents: str) -> None:
    checks = {"LD_PRELOAD": str(_CHECKER), "MALLOC_CHECK_": "3"} if _CHECKER.exists() else {}
    code = _WRITE.format(documents=documents, first=4880, last=5001)
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **checks}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
