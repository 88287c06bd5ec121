"""The command line of simulated members without a control plane, for benchmarks and tests."""

import argparse
import sys
from pathlib import Path

from federation.apimachinery import logs
from federation.apimachinery.clock import SystemClock
from federation.simulator import fleetprocess
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
    members = describe_members(
        options.members,
        pod_start_s=options.pod_start,
        pods_per_node=options.pods_per_node,
        has_workload_spreads=options.workload_spreads,
        running_pods=options.running_pods,
    )
    work = run_fleet(members, options.dir, SystemClock(), is_light=options.light)
    sys.exit(fleetprocess.run(work, is_light=options.light))


if __name__ == "__main__":
    main()
