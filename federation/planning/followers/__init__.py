"""Followers: objects that go where a workload goes (docs/reference/followers.md). Pure.

`references.py` reads them from pod specs and annotations, `leaderplan.py` plans the followers of one workload,
`index.py` keeps those of all workloads in both directions, and `followerplan.py` plans the patch of a follower.
"""
