"""Pure rules of the dispatcher."""
