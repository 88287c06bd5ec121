"""Waves in a cluster that is not ready for a reason of ours."""

from tests.unit.features.waves.test_waveplan import Simulation

from federation.planning.waves.waverecord import Phase


def test_a_wave_does_not_fail_while_our_credentials_in_its_cluster_are_at_fault() -> None:
    world = Simulation()
    world.wanted = dict.fromkeys("abc", "v2")
    world.step()
    assert world.live["a"] == "v2"
    world.problems, world.out_of_reach = {"a": "the cluster is not ready"}, {"a"}
    starts = set()
    for _ in range(400):
        world.step(10)
        assert world.record.phase is Phase.PROGRESSING
        starts.add(world.record.clusters["a"].started_at)
    assert len(starts) <= 4000 / 300 + 2, "few writes"
    world.out_of_reach = set()
    world.step(290)
    assert world.record.phase is Phase.PROGRESSING, "half of its time is left at least"
    world.step(320)
    assert world.record.phase is not Phase.PROGRESSING
    assert "did not hold for 600 s" in world.record.reason
