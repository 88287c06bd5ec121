"""Full disks for tests: a small file system, a program that fills it, and a store in a process that can be killed."""
