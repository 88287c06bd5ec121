"""Condition and event reasons of the follower controller."""

# Reasons of the FollowersDelivered condition
REASON_FOLLOWERS_DELIVERED = "FollowersDelivered"

# Event reasons of the follower controller
EVENT_FAILED_INFER_FOLLOWERS = "FailedInferFollowers"
EVENT_FAILED_UPDATE_FOLLOWER = "FailedUpdateFollower"
EVENT_FOLLOWERS_HELD = "FollowersHeld"
