"""CPU time by stack: what a summary counts, the format of collapsed stacks, and one real thread."""

import threading
import time

from federation.apimachinery.profiler import Profiler, summarise, to_collapsed

STACKS = {
    (
        "asyncio:run",
        "federation.runtime.controller:work",
        "federation.delivery.reconcile:run",
        "json:loads",
    ): 3.0,
    ("asyncio:run", "federation.runtime.controller:work"): 0.5,
    ("asyncio:run", "federation.apiserver.http.app:handle", "federation.apiserver.store.log:get"): 1.0,
    ("asyncio:run",): 0.5,
}


def table(summary: str, title: str) -> dict[str, float]:
    """Return the seconds by name of the table with this title."""
    _, _, rest = summary.partition(f"  {title}\n")
    rows = [line.split() for line in rest.partition("\n\n")[0].splitlines()]
    return {row[-1]: float(row[0]) for row in rows}


def test_collapsed_stacks_have_a_line_per_stack_with_microseconds() -> None:
    assert to_collapsed({("a:f", "b:g"): 0.001, ("a:f",): 2.0}) == "a:f 2000000\na:f;b:g 1000\n"


def test_an_entry_point_is_the_outermost_package_that_is_not_plumbing() -> None:
    summary = summarise(STACKS, 10, 20.0, ("federation.runtime.controller",))
    assert summary.startswith("5.00 s of CPU in 20 s (25.0% of one core), 10 samples\n")
    assert table(summary, "entry point") == {
        "federation.delivery.reconcile": 3.0,
        "federation.apiserver.http": 1.0,
        "federation.runtime.controller": 0.5,
        "asyncio": 0.5,
    }


def test_the_running_package_is_the_innermost_one() -> None:
    found = table(summarise(STACKS, 10, 20.0, ()), "running package")
    assert found == {
        "json": 3.0,
        "federation.apiserver.store": 1.0,
        "federation.runtime.controller": 0.5,
        "asyncio": 0.5,
    }


def test_functions_have_their_own_time_and_that_of_what_they_call() -> None:
    lines = summarise(STACKS, 10, 20.0, ()).splitlines()
    assert f"{0.5:>9.3f} {0.1:>7.1%} {5.0:>9.3f}  asyncio:run" in lines


def test_a_function_that_recurses_counts_once() -> None:
    lines = summarise({("a:f", "a:f", "a:g"): 1.0, ("a:f",): 1.0}, 2, 2.0, ()).splitlines()
    assert f"{1.0:>9.3f} {0.5:>7.1%} {2.0:>9.3f}  a:f" in lines


def test_a_profile_without_samples_is_a_summary_too() -> None:
    assert summarise({}, 0, 0.0, ()).startswith("0.00 s of CPU")


def test_a_busy_thread_is_sampled_and_a_waiting_one_is_not() -> None:
    profiler, is_seen, is_over = Profiler(interval_s=0.001), threading.Event(), threading.Event()

    def burns() -> None:
        while not any("burns" in label for stack in profiler.stacks() for label in stack):
            sum(range(1_000))
        is_seen.set()

    def waits() -> None:
        is_over.wait()

    threads = [threading.Thread(target=target, daemon=True) for target in (burns, waits)]
    profiler.start()
    for thread in threads:
        thread.start()
    assert is_seen.wait(30)
    is_over.set()
    for thread in threads:
        thread.join()
    profiler.stop()
    assert not any("waits" in label and "Event.wait" in stack[-1] for stack in profiler.stacks() for label in stack)


def test_short_bursts_of_a_waiting_main_thread_count_for_what_it_did() -> None:
    """As in an event loop: it works for less than the interpreter's switch interval, and then waits."""
    profiler, never = Profiler(interval_s=0.001), threading.Event()

    def burst() -> None:
        sum(range(20_000))

    profiler.start()
    used_s = time.thread_time()
    while time.thread_time() - used_s < 0.2:
        burst()
        never.wait(0.0005)
    profiler.stop()
    stacks = profiler.stacks()
    here = {stack: seconds for stack, seconds in stacks.items() if any("test_short_bursts" in label for label in stack)}
    in_burst_s = sum(seconds for stack, seconds in here.items() if any("burst" in label for label in stack[-1:]))
    assert in_burst_s > 0.5 * sum(here.values()) > 0.05
