"""`fedctl twin`: rehearse on a copy of the fleet."""
