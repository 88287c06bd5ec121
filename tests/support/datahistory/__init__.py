"""Random histories of users' and administrators' actions over workloads with data, and the judge of what happens in members."""
