"""The built-in scheduler plugins, one file each, on the public plugin API only.

They are found through the entry point group `federation.scheduler.plugins`, exactly as a stranger's plugin is.
"""
