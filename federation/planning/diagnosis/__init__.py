"""How deliveries stand and what is wrong with a federation, for metrics, `fedctl doctor` and support bundles."""
