"""The help of `fedctl`: its commands by what they are for."""

from typing import Any

from typer.core import TyperGroup

GROUPS = {
    "Start": ("demo", "up", "serve", "agent", "spread-webhook", "ready", "kubeconfig", "ui", "version"),
    "Clusters": (
        "join",
        "unjoin",
        "clusters",
        "capacity",
        "leftovers",
        "cordon",
        "uncordon",
        "drain",
        "taint",
        "token",
        "sim",
    ),
    "Look into members": ("get", "describe", "logs", "exec", "top"),
    "Explain and plan": ("why", "plan", "apply-plan", "diff", "render", "topology"),
    "Steer": ("rollout", "rebalance", "holds", "approve", "undo"),
    "Move in": ("import", "adopt", "convert"),
    "Operate": (
        "doctor",
        "support-bundle",
        "certs",
        "encryption-key",
        "backup",
        "restore",
        "db",
        "host-manifests",
        "completion",
    ),
}


class Grouped(TyperGroup):
    """A group that lists its commands under the headings of `GROUPS`, in that order."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # typer calls it so
        """Write the sections of the help text."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, listed in GROUPS.items():
            commands = [(name, self.commands[name]) for name in listed if name in self.commands]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in commands])
