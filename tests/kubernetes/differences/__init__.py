"""One comparison of a real API server with ours: thousands of generated requests, and what may differ in their answers."""
