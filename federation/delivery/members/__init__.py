"""The known state of member objects, and the operations that write them."""
