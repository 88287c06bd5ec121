"""The part of `fedctl why` about delivery: what each cluster should have, has and runs, and what it refuses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.cli.applications.deliveryview import Delivery
from federation.planning.drift.foreign import describe_foreign
from federation.terminal.plaintext import to_age
from federation.terminal.printing import make_table, print_field, print_table

_PLACED = {True: "yes", False: "no"}


def print_delivery(console: Console, delivery: Delivery) -> None:
    """Print what is not delivered, followers included, and the table of clusters; nothing before the first delivery."""
    propagated = conditions.find(delivery["conditions"], names.PROPAGATED)
    clusters = delivery["clusters"]
    if clusters or propagated is not None:
        console.print("\n[bold]delivery[/bold]")
    if propagated is not None and propagated.get("status") != "True":
        # With clusters, their rows have the message.
        message = "" if clusters else propagated.get("message")
        text = ": ".join(filter(None, (str(propagated.get("reason") or "Unknown"), message)))
        print_field(console, "not yet" if clusters else "nowhere", text)
    healthy = conditions.find(delivery["conditions"], names.APPLICATION_HEALTHY) or {}
    if healthy.get("status") == "False":
        print_field(console, "unhealthy", f"{healthy.get('reason')}: {healthy.get('message')}")
    followers = conditions.find(delivery["conditions"], names.FOLLOWERS_DELIVERED) or {}
    if followers.get("status") == "False":
        print_field(console, "followers", str(followers.get("message")))
    if not clusters:
        return
    table = make_table()
    table.add_column("CLUSTER", no_wrap=True)
    table.add_column("WANTED", justify="right", no_wrap=True)
    table.add_column("APPLIED", no_wrap=True)
    table.add_column("READY", justify="right", no_wrap=True)
    table.add_column("STATUS", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in clusters:
        wanted = row["wanted"] if row["wanted"] is not None else _PLACED[row["placed"]]
        ready = "-" if row["ready"] is None else str(row["ready"])
        status, message = row["status"] or "Pending", row["message"]
        table.add_row(row["cluster"], str(wanted), row["applied"], ready, status, escape(message))
    print_table(console, table)
    for row in clusters:
        if scaler := row.get("scaler"):
            owner = f'HorizontalPodAutoscaler "{scaler}" in the cluster owns the replicas'
            print_field(console, "replicas", f"{row['cluster']}: {owner}")
        if following := row.get("next"):
            print_field(console, "next", f"{row['cluster']}: {following}")
        if until := row.get("toleratedUntil"):
            print_field(console, "taints", f"{row['cluster']}: {_describe_toleration(until, SystemClock().now())}")
        if foreign := describe_foreign(tuple(row.get("foreign") or ())):
            print_field(console, "others", f"{row['cluster']}: {foreign}")
        if drift := row.get("drift"):
            print_field(console, "drift", f"{row['cluster']}: {_describe_drift(drift)}")


def _describe_toleration(until: str, now: datetime) -> str:
    """Return until when the object stays in a tainted cluster."""
    end = from_rfc3339(until)
    text = f"tolerated until {end:%H:%M:%S} UTC"
    if end <= now:
        return f"{text}; the object is about to leave the cluster"
    return f"{text}, in {to_age(end, now)}; then the object leaves the cluster"


def _describe_drift(drift: Mapping[str, Any]) -> str:
    """Return one line about the fields that a member changes; earlier versions of the server tell nothing."""
    count, paused = int(drift["corrections"]), drift["pausedUntil"]
    times = "once" if count == 1 else f"{count} times since {drift['since']}"
    written = f"written back {times}, last at {drift['last']}"
    return f"{drift['message']}; {written}" + (f"; corrections pause until {paused}" if paused else "")
