"""Role-based access control: rules, bindings, aggregation, escalation — on a real registry."""
