"""The command line of the simulated members; `fedctl up` and the benchmarks start it as a process."""

import argparse
import asyncio
import sys
from pathlib import Path

import uvloop

from federation.apimachinery import logs, memory
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import FederationError
from federation.simulator.fleet import run_fleet
from federation.simulator.options import describe_members


def main() -> None:
    """Run simulated members until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m federation.simulator", description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="directory for the members' state")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--light", action="store_true", help="all members in this process, in memory, behind one port")
    parser.add_argument("--pod-start", type=float, default=0.3, help="seconds from binding to Running")
    parser.add_argument("--pods-per-node", type=int, default=5000)
    parser.add_argument("--workload-spreads", action="store_true", help="serve WorkloadSpreads and UnitedDeployments")
    parser.add_argument("--running-pods", type=int, default=0, help="pods that run from the start in each light member")
    parser.add_argument("--log-format", choices=("text", "json"), default="text")
    parser.add_argument("--log-level", default="warning")
    options = parser.parse_args()
    if options.running_pods and not options.light:
        parser.error("--running-pods needs --light")
    logs.configure(options.log_format, options.log_level)
    memory.tune_collector()
    members = describe_members(
        options.members,
        pod_start_s=options.pod_start,
        pods_per_node=options.pods_per_node,
        has_workload_spreads=options.workload_spreads,
        running_pods=options.running_pods,
    )
    # Loops of uvloop do not survive a fork; each member that is a process has its own.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if options.light else None) as runner:
        try:
            runner.run(run_fleet(members, options.dir, SystemClock(), is_light=options.light))
        except* FederationError as group:
            sys.exit(f"simulator: {group.exceptions[0]}")
        except* (KeyboardInterrupt, asyncio.CancelledError):
            sys.exit(0)


if __name__ == "__main__":
    main()
