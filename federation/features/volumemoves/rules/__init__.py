"""The decisions about volumes that move. Pure."""
