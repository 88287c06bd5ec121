"""Every trigger that can be stored has words."""

from federation.scheduling import clustertriggers, triggers
from federation.scheduling.triggerwords import TRIGGERS_IN_WORDS, describe_triggers


def test_every_trigger_has_words() -> None:
    of_clusters = {*clustertriggers.KINDS, clustertriggers.CLUSTERS}
    assert {*triggers._OF_OBJECT, *of_clusters, triggers.IGNORED_PLUGINS} == TRIGGERS_IN_WORDS.keys()


def test_an_unknown_trigger_is_its_own_name() -> None:
    assert describe_triggers(["policyName", "policyContentHash", "new"]) == "policy, new"
