"""Projects: which clusters the objects of a namespace may be in (docs/reference/projects.md). Pure."""
