"""The built-in scheduler plugins, one file each, on the public plugin API only.

They are loaded through the entry point group `federation.scheduler.plugins`, as third-party plugins are.
"""
