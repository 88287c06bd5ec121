"""A program that fills a file system: `python -m tests.support.fulldisk.filler FOLDER SEED`.

It writes and removes files of random sizes. After a line on its input it keeps what it has and takes everything that
becomes free, until another line makes it go on at random. It ends with its input.
"""

import os
import random
import select
import sys
from pathlib import Path

_BLOCK = bytes(4_096)
_CHUNK = bytes(256 << 10)


def _fill(folder: Path, name: str, bytes_max: int) -> None:
    """Append up to `bytes_max` bytes, or what the disk has."""
    file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for block in (_CHUNK, _BLOCK):
            while bytes_max > 0:
                try:
                    bytes_max -= os.write(file, block[:bytes_max])
                except OSError:
                    break
    finally:
        os.close(file)


def main() -> None:
    folder, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    disk = os.statvfs(folder)
    size = disk.f_blocks * disk.f_frsize
    is_greedy = False
    number = 0
    while True:
        pause_s = 0.002 if is_greedy else chance.uniform(0, 0.02)
        if select.select([sys.stdin], [], [], pause_s)[0]:
            if not sys.stdin.readline():
                return
            is_greedy = not is_greedy
            if is_greedy:
                _fill(folder, "greedy", size)
                print("full", flush=True)
            else:
                for file in folder.iterdir():
                    file.unlink()
                print("empty", flush=True)
        if is_greedy:
            _fill(folder, "greedy", size)
            continue
        number += 1
        files = sorted(folder.iterdir())
        if files and chance.random() < 0.45:
            chance.choice(files).unlink()
        else:
            _fill(folder, str(number), chance.choice((4_096, 100_000, size // 20, size // 4, size)))


if __name__ == "__main__":
    main()
