"""Members through the host: requests of users, passed on to a member as the user who sent them.

`memberusers.py` decides who the user is in a member, `connector.py` serves `federatedclusters/NAME/proxy`.
"""
