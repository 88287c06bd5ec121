"""The forked process of simulated members; in a process of its own, which has no other threads."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import asyncio, sys
from pathlib import Path
from federation.apimachinery import logs
from federation.apimachinery.errors import FederationError
from federation.simulator.fleetprocess import fork_fleet
from federation.simulator.options import describe_members

logs.configure()  # away from standard output, on which the members report
idle = fork_fleet(describe_members(1), Path(sys.argv[1]) / "idle", is_light=True)
light = fork_fleet(describe_members(2), Path(sys.argv[1]) / "light", is_light=True)
broken = fork_fleet(describe_members(1), Path(sys.argv[1]) / "file" / "members", is_light=True)

async def main():
    idle.end()
    print(await idle.wait())
    print(sorted([each["name"] async for each in light.start()]))
    light.end()
    print(await light.wait(), await light.wait())
    try:
        async for each in broken.start():
            print(each)
    except FederationError as error:
        print(error)

asyncio.run(main())
"""


def test_members_start_when_they_are_told_and_end_with_their_standard_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert not done.returncode, done.stderr
    assert done.stdout.splitlines() == [
        "0",
        "['member-1', 'member-2']",
        "0 0",
        "the simulated members did not start (exit code 1)",
    ]
    assert "NotADirectoryError" in done.stderr
    assert not (tmp_path / "idle").exists()
