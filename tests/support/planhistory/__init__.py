"""Random histories in which each change is planned before it is made."""
