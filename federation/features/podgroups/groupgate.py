"""The step of pod groups in a decision: a pod waits until its group is complete, and goes where its leader is."""

from federation.api import names
from federation.scheduling.answers import Leave, Wait
from federation.scheduling.chain import Gate
from federation.scheduling.podgroups import is_elsewhere, wait_of
from federation.scheduling.question import Question


class GroupHasAPlace(Gate):
    """A pod that waits for its group, or that leaves its cluster because its leader has."""

    name = "pod-group"

    def ask(self, question: Question) -> Wait | Leave | None:
        """Let a pod without a group, or whose leader has a place, go on."""
        message = wait_of(question.group)
        if message and question.attempt.current():
            return Leave(message)
        return Wait(names.REASON_POD_GROUP, message) if message else None

    def calls(self, question: Question) -> bool:
        """Return whether the pod is not where its leader is."""
        group, current = question.group, question.attempt.current()
        return (group is not None and not current) or is_elsewhere(group, current)


STEPS = (GroupHasAPlace(),)
