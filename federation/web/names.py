"""Event reasons of the registration of agents."""

# Event reasons of the registration of agents
EVENT_AGENT_REGISTERED = "AgentRegistered"
EVENT_AGENT_REFUSED = "AgentRefused"
