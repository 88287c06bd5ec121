"""The autoscalers that act on the host (`hpamodes.py`), and the condition of the others (`idleautoscaler.py`). Pure."""
